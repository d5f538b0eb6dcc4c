#include "cpython/walker/snapshot.h"

#include <stdatomic.h>

#define PAGE_BYTES 4096u
#define QUICK_BYTES 1024u     /* of a quick range: what it holds is copied in some 20 ns */
#define MERGE_GAP_BYTES 1024u /* less than a page: no unmapped page can lie in between */
#define MERGE_LOOK_BACK 4u    /* data stack, C stack and heap alternate along a chain */
#define PROBES 16u

static uint32_t slot_of(uint64_t page)
{
    return (uint32_t)((page * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & (LC_PAGE_SLOTS - 1);
}

static bool merge(lc_range *range, uint32_t bytes_max, uint64_t address, uint32_t bytes)
{
    const uint64_t low = address < range->address ? address : range->address;
    const uint64_t end = address + bytes;
    const uint64_t range_end = range->address + range->bytes;
    const uint64_t high = end > range_end ? end : range_end;
    const uint64_t union_bytes = high - low;
    if (union_bytes > bytes_max || union_bytes > (uint64_t)bytes + range->bytes + MERGE_GAP_BYTES) {
        return false;
    }
    range->address = low;
    range->bytes = (uint32_t)union_bytes;
    return true;
}

/* Joins one of the latest `most` ranges, or is one more. */
static void add(lc_read_plan *plan, uint32_t most, uint32_t bytes_max, uint64_t address, uint32_t bytes)
{
    for (uint32_t i = 1; i <= most; i++) {
        if (merge(&plan->ranges[plan->count - i], bytes_max, address, bytes)) {
            return;
        }
    }
    if (plan->count < LC_PLAN_RANGES_MAX) {
        plan->ranges[plan->count++] = (lc_range){.address = address, .bytes = bytes};
    }
}

void lc_read_plan_add_top(lc_read_plan *plan, uint64_t address, uint32_t bytes)
{
    if (plan != NULL && plan->tops == plan->count) {
        add(plan, plan->count, QUICK_BYTES, address, bytes);
        plan->tops = plan->count;
    }
}

void lc_read_plan_add(lc_read_plan *plan, uint64_t address, uint32_t bytes)
{
    if (plan == NULL) {
        return;
    }
    const uint32_t frames = plan->count - plan->tops;
    const bool quick = frames <= LC_QUICK_RANGES;
    const uint32_t look_back = quick || frames < MERGE_LOOK_BACK ? frames : MERGE_LOOK_BACK;
    add(plan, look_back, quick ? QUICK_BYTES : PAGE_BYTES, address, bytes);
    plan->frames = plan->count - plan->tops;
}

void lc_keep_range(lc_kept_ranges *kept, uint64_t address, uint32_t bytes)
{
    uint32_t at = 0;
    while (at < LC_KEPT_RANGES - 1 && kept->ranges[at].address != address) {
        at++;
    }
    memmove(&kept->ranges[1], &kept->ranges[0], at * sizeof kept->ranges[0]);
    kept->ranges[0] = (lc_range){.address = address, .bytes = bytes};
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

static uint32_t aligned(uint32_t bytes) { return (bytes + 7u) & ~7u; }

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

static void put_ranges(lc_snapshot *snapshot, const lc_range *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        put_range(snapshot, ranges[i].address, ranges[i].bytes);
    }
}

/* By their addresses: frames of the data stack lie behind those that they were called by. */
static void sort(lc_range *ranges, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        const lc_range range = ranges[i];
        uint32_t at = i;
        for (; at > 0 && ranges[at - 1].address > range.address; at--) {
            ranges[at] = ranges[at - 1];
        }
        ranges[at] = range;
    }
}

static uint32_t bytes_of(const lc_range *ranges, uint32_t count)
{
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        bytes += aligned(ranges[i].bytes);
    }
    return bytes;
}

/* What leads to the innermost frame; the quick ranges, each of them twice in a row; and these once more.
 * Answers how many ranges have been copied: none, where one of them cannot be read. */
static uint32_t take_quick(lc_snapshot *snapshot, const lc_read_plan *plan)
{
    const uint32_t tops = plan->tops;
    const uint32_t quick = plan->frames < LC_QUICK_RANGES ? plan->frames : LC_QUICK_RANGES;
    if (tops == 0 || tops > LC_TOP_RANGES || quick == 0) {
        return 0;
    }
    lc_range order[LC_TOP_RANGES + LC_QUICK_RANGES];
    memcpy(order, plan->ranges, (tops + quick) * sizeof order[0]);
    sort(&order[tops], quick);
    const uint32_t later = bytes_of(&order[tops], quick);
    lc_read_request batch[LC_TOP_RANGES + LC_QUICK_COPIES * LC_QUICK_RANGES];
    size_t size = 0;
    uint8_t *into = snapshot->data;
    for (uint32_t i = 0; i < tops + quick; i++) {
        batch[size++] = (lc_read_request){order[i].address, into, order[i].bytes};
        if (i >= tops) {
            batch[size++] = (lc_read_request){order[i].address, into + later, order[i].bytes};
        }
        into += aligned(order[i].bytes);
    }
    into += later;
    for (uint32_t i = tops; i < tops + quick; i++) {
        batch[size++] = (lc_read_request){order[i].address, into, order[i].bytes};
        into += aligned(order[i].bytes);
    }
    if (snapshot->reader->read(snapshot->reader, batch, size) != size) {
        return 0;
    }
    put_ranges(snapshot, order, tops + quick);
    snapshot->tops = tops;
    snapshot->quick = quick;
    snapshot->later = later;
    snapshot->used += (LC_QUICK_COPIES - 1) * later;
    return tops + quick;
}

void lc_snapshot_take(lc_snapshot *snapshot, const lc_memory_reader *reader, const lc_read_plan *plan)
{
    /* What the last snapshot saw is older than what this one will see, on every memory model. */
    atomic_thread_fence(memory_order_seq_cst);
    snapshot->reader = reader;
    snapshot->count = 0;
    snapshot->used = 0;
    snapshot->cursor = 0;
    snapshot->tops = 0;
    snapshot->quick = 0;
    snapshot->proven_str = 0;
    memset(snapshot->slots, 0, sizeof snapshot->slots);
    uint32_t next = take_quick(snapshot, plan);
    while (next < plan->count) { /* each turn moves `next` on */
        lc_read_request batch[LC_READ_BATCH_MAX];
        uint32_t size = 0;
        uint32_t at = snapshot->used;
        while (size < LC_READ_BATCH_MAX && next + size < plan->count &&
               at + plan->ranges[next + size].bytes <= LC_SNAPSHOT_BYTES - PAGE_BYTES) {
            const lc_range *range = &plan->ranges[next + size];
            batch[size] = (lc_read_request){range->address, snapshot->data + at, range->bytes};
            at += aligned(range->bytes);
            size++;
        }
        if (size == 0) {
            return;
        }
        const size_t got = reader->read(reader, batch, size);
        put_ranges(snapshot, &plan->ranges[next], got);
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
    /* ranges reach over an edge */
    return found != NULL ? found : find_from_page(snapshot, page - 1, address, bytes);
}

static const uint8_t *read_now(lc_snapshot *snapshot, uint64_t from, uint64_t address, uint32_t bytes)
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
    return into + lead;
}

bool lc_snapshot_is_top(const lc_snapshot *snapshot, uint64_t address, uint32_t bytes)
{
    for (uint32_t i = 0; i < snapshot->tops; i++) {
        if (in_range(snapshot, i, address, bytes) != NULL) {
            return true;
        }
    }
    return false;
}

int32_t lc_snapshot_quick(const lc_snapshot *snapshot, uint64_t address, uint32_t bytes,
                          const uint8_t *copies[LC_QUICK_COPIES])
{
    for (uint32_t i = 0; i < snapshot->quick; i++) {
        const uint8_t *copy = in_range(snapshot, snapshot->tops + i, address, bytes);
        if (copy != NULL) {
            for (uint32_t n = 0; n < LC_QUICK_COPIES; n++) {
                copies[n] = copy + (size_t)n * snapshot->later;
            }
            return (int32_t)i;
        }
    }
    return -1;
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
