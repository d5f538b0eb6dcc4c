#include "cpython/walker/snapshot.h"

#include <stdatomic.h>

#define PAGE_BYTES 4096u
#define MERGE_GAP_BYTES 1024u /* less than a page: no unmapped page can lie in between */
#define MERGE_LOOK_BACK 4u    /* data stack, C stack and heap alternate along a chain */
#define PROBES 16u

static uint32_t slot_of(uint64_t page)
{
    return (uint32_t)((page * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & (LC_PAGE_SLOTS - 1);
}

static bool merge(lc_range *range, uint64_t address, uint32_t bytes)
{
    const uint64_t low = address < range->address ? address : range->address;
    const uint64_t end = address + bytes;
    const uint64_t range_end = range->address + range->bytes;
    const uint64_t high = end > range_end ? end : range_end;
    const uint64_t union_bytes = high - low;
    if (union_bytes > PAGE_BYTES || union_bytes > (uint64_t)bytes + range->bytes + MERGE_GAP_BYTES) {
        return false;
    }
    range->address = low;
    range->bytes = (uint32_t)union_bytes;
    return true;
}

void lc_read_plan_add(lc_read_plan *plan, uint64_t address, uint32_t bytes)
{
    if (plan == NULL) {
        return;
    }
    const uint32_t look_back = plan->count < MERGE_LOOK_BACK ? plan->count : MERGE_LOOK_BACK;
    for (uint32_t i = 1; i <= look_back; i++) {
        if (merge(&plan->ranges[plan->count - i], address, bytes)) {
            return;
        }
    }
    if (plan->count < LC_PLAN_RANGES_MAX) {
        plan->ranges[plan->count++] = (lc_range){.address = address, .bytes = bytes};
    }
}

/* All pages of the joint range hold a part of a wanted object: it is as readable as they are. */
static bool join(lc_range *range, uint64_t address, uint32_t bytes)
{
    const uint64_t end = address + bytes;
    const uint64_t range_end = range->address + range->bytes;
    const uint64_t low = address < range->address ? address : range->address;
    const uint64_t high = end > range_end ? end : range_end;
    if (range->address / PAGE_BYTES != address / PAGE_BYTES || high - low > 2 * PAGE_BYTES) {
        return false;
    }
    *range = (lc_range){.address = low, .bytes = (uint32_t)(high - low)};
    return true;
}

void lc_read_plan_add_object(lc_read_plan *plan, uint64_t address, uint32_t bytes)
{
    if (plan == NULL || plan->count == LC_PLAN_RANGES_MAX) {
        return;
    }
    const uint32_t first = slot_of(address / PAGE_BYTES);
    for (uint32_t i = 0; i < PROBES; i++) {
        uint16_t *slot = &plan->object_slots[(first + i) & (LC_PAGE_SLOTS - 1)];
        if (*slot == 0) {
            plan->ranges[plan->count++] = (lc_range){.address = address, .bytes = bytes};
            *slot = (uint16_t)plan->count;
            return;
        }
        if (join(&plan->ranges[*slot - 1], address, bytes)) {
            return;
        }
    }
}

void lc_read_plan_add_last(lc_read_plan *plan, uint64_t address, uint32_t bytes)
{
    if (plan != NULL) {
        plan->last = (lc_range){.address = address, .bytes = bytes};
    }
}

static uint32_t aligned(uint32_t bytes)
{
    return (bytes + 7u) & ~7u;
}

static bool has_room(const lc_snapshot *snapshot, uint32_t bytes)
{
    return snapshot->count < LC_PLAN_RANGES_MAX && bytes <= LC_SNAPSHOT_BYTES - PAGE_BYTES &&
           snapshot->used <= LC_SNAPSHOT_BYTES - PAGE_BYTES - bytes;
}

/* What finds no slot is read again when it is asked for. */
static void put_range(lc_snapshot *snapshot, uint64_t address, uint32_t bytes)
{
    snapshot->ranges[snapshot->count++] = (lc_range){address, bytes, snapshot->used};
    snapshot->used += aligned(bytes);
    const uint32_t first = slot_of(address / PAGE_BYTES);
    for (uint32_t i = 0; i < PROBES; i++) {
        uint16_t *slot = &snapshot->slots[(first + i) & (LC_PAGE_SLOTS - 1)];
        if (*slot == 0) {
            *slot = (uint16_t)snapshot->count;
            return;
        }
    }
}

void lc_snapshot_take(lc_snapshot *snapshot, const lc_memory_reader *reader,
                      const lc_read_plan *plan)
{
    /* What the last snapshot saw is older than what this one will see, on every memory model. */
    atomic_thread_fence(memory_order_seq_cst);
    snapshot->reader = reader;
    snapshot->count = 0;
    snapshot->used = 0;
    snapshot->cursor = 0;
    snapshot->grown = false;
    snapshot->proven_str = 0;
    snapshot->last.bytes = 0;
    memset(snapshot->slots, 0, sizeof snapshot->slots);
    uint32_t next = 0;
    while (next < plan->count) { /* each turn moves `next` on */
        lc_read_request batch[LC_READ_BATCH_MAX];
        uint32_t size = 0;
        uint32_t at = snapshot->used;
        while (size < LC_READ_BATCH_MAX - 1 && next + size < plan->count &&
               at + plan->ranges[next + size].bytes <= LC_SNAPSHOT_BYTES - PAGE_BYTES) {
            const lc_range *range = &plan->ranges[next + size];
            batch[size] = (lc_read_request){range->address, snapshot->data + at, range->bytes};
            at += aligned(range->bytes);
            size++;
        }
        if (size == 0) {
            return;
        }
        const bool with_last = next + size == plan->count && plan->last.bytes == 8;
        batch[size] = (lc_read_request){plan->last.address, snapshot->last_data, 8};
        const size_t done = reader->read(reader, batch, size + with_last);
        const size_t got = done < size ? done : size;
        if (done > size) {
            snapshot->last = plan->last;
        }
        for (size_t i = 0; i < got; i++) {
            const lc_range *range = &plan->ranges[next + i];
            put_range(snapshot, range->address, range->bytes);
        }
        next += got == size ? size : (uint32_t)got + 1; /* leave out the one that failed */
    }
}

/* NULL, or where in the snapshot's data the bytes are, if the range has them. */
static const uint8_t *in_range(const lc_snapshot *snapshot, uint32_t index, uint64_t address, uint32_t bytes)
{
    const lc_range *range = &snapshot->ranges[index];
    const uint64_t offset = address - range->address; /* wraps where address is below */
    const bool has = offset <= range->bytes && bytes <= range->bytes - offset;
    return has ? snapshot->data + range->at + offset : NULL;
}

static const uint8_t *find_from_page(lc_snapshot *snapshot, uint64_t page, uint64_t address, uint32_t bytes)
{
    const uint32_t first = slot_of(page);
    for (uint32_t i = 0; i < PROBES; i++) {
        const uint16_t slot = snapshot->slots[(first + i) & (LC_PAGE_SLOTS - 1)];
        if (slot == 0) {
            return NULL;
        }
        const uint8_t *found = in_range(snapshot, slot - 1u, address, bytes);
        if (found != NULL) {
            snapshot->cursor = slot - 1u;
            return found;
        }
    }
    return NULL;
}

static const uint8_t *find(lc_snapshot *snapshot, uint64_t address, uint32_t bytes)
{
    const uint8_t *found =
        snapshot->cursor < snapshot->count ? in_range(snapshot, snapshot->cursor, address, bytes) : NULL;
    const uint64_t page = address / PAGE_BYTES;
    if (found == NULL) {
        found = find_from_page(snapshot, page, address, bytes);
    }
    return found != NULL ? found : find_from_page(snapshot, page - 1, address, bytes); /* ranges reach over an edge */
}

static const uint8_t *read_now(lc_snapshot *snapshot, uint64_t from, uint64_t address,
                               uint32_t bytes)
{
    const uint32_t lead = (uint32_t)(address - from);
    const uint32_t whole = lead + bytes;
    if (!has_room(snapshot, whole)) {
        return NULL;
    }
    uint8_t *into = snapshot->data + snapshot->used;
    if (!lc_read(snapshot->reader, from, into, whole)) {
        return NULL;
    }
    put_range(snapshot, from, whole);
    snapshot->grown = true;
    return into + lead;
}

const uint8_t *lc_snapshot_get_last(lc_snapshot *snapshot, uint64_t address, uint32_t bytes)
{
    const bool have = !snapshot->grown && snapshot->last.address == address &&
                      snapshot->last.bytes >= bytes;
    if (have) {
        return snapshot->last_data;
    }
    snapshot->last.bytes = 0;
    if (bytes > sizeof snapshot->last_data ||
        !lc_read(snapshot->reader, address, snapshot->last_data, bytes)) {
        return NULL;
    }
    return snapshot->last_data;
}

const uint8_t *lc_snapshot_get(lc_snapshot *snapshot, uint64_t address, uint32_t bytes)
{
    const uint8_t *found = find(snapshot, address, bytes);
    return found ? found : read_now(snapshot, address, address, bytes);
}

const uint8_t *lc_snapshot_get_frame(lc_snapshot *snapshot, uint64_t address, uint32_t bytes)
{
    const uint8_t *found = find(snapshot, address, bytes);
    return found ? found : read_now(snapshot, address & ~(uint64_t)(PAGE_BYTES - 1), address, bytes);
}
