#include "snapshot.h"

#include <stdatomic.h>

#define PAGE_BYTES 4096u
#define MERGE_GAP_BYTES 1024u /* less than a page: no unmapped page can lie in between */
#define MERGE_LOOK_BACK 4u    /* data stack, C stack and heap alternate along a chain */

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
    snapshot->last.bytes = 0;
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
            snapshot->ranges[snapshot->count++] =
                (lc_range){range->address, range->bytes, snapshot->used};
            snapshot->used += aligned(range->bytes);
        }
        next += got == size ? size : (uint32_t)got + 1; /* leave out the one that failed */
    }
}

static const uint8_t *find(lc_snapshot *snapshot, uint64_t address, uint32_t bytes)
{
    uint32_t index = snapshot->cursor;
    for (uint32_t i = 0; i < snapshot->count; i++) {
        if (index >= snapshot->count) {
            index = 0;
        }
        const lc_range *range = &snapshot->ranges[index];
        const uint64_t offset = address - range->address; /* wraps where address is below */
        if (offset <= range->bytes && bytes <= range->bytes - offset) {
            snapshot->cursor = index;
            return snapshot->data + range->at + offset;
        }
        index++;
    }
    return NULL;
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
    snapshot->ranges[snapshot->count++] = (lc_range){from, whole, snapshot->used};
    snapshot->used += aligned(whole);
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
