#include "cpython/walker/chain.h"

static bool plausible(uint64_t address)
{
    return address >= 4096 && address < UINT64_C(1) << 56 && address % 8 == 0;
}

/* Where the thread state says which frame is the innermost one: a word of its own, or of a _PyCFrame
 * that one of its words leads to. */
static lc_chain_result top_word(lc_snapshot *snapshot, const lc_layout *layout,
                                uint64_t thread_state, uint64_t *word, lc_read_plan *plan)
{
    const uint32_t thread_bytes = layout->thread_native_id + 8; /* behind all that is read of it */
    if (!plausible(thread_state)) {
        return LC_CHAIN_UNREADABLE;
    }
    lc_read_plan_add(plan, thread_state, thread_bytes);
    const uint8_t *thread = lc_snapshot_get(snapshot, thread_state, thread_bytes);
    if (thread == NULL) {
        return LC_CHAIN_UNREADABLE;
    }
    *word = thread_state + layout->thread_frame;
    if (layout->cframe_frame != LC_ABSENT) {
        const uint64_t cframe = lc_u64_at(thread, layout->thread_frame);
        *word = cframe + layout->cframe_frame;
        return plausible(cframe) ? LC_CHAIN_OK : LC_CHAIN_BROKEN;
    }
    return LC_CHAIN_OK;
}

/* The frames were read between two looks at the innermost one: whether it changed meanwhile. */
static bool top_moved(lc_snapshot *snapshot, uint64_t word, uint64_t top, lc_read_plan *plan)
{
    lc_read_plan_add_last(plan, word, 8);
    const uint8_t *again = lc_snapshot_get_last(snapshot, word, 8);
    return again == NULL || lc_u64_at(again, 0) != top;
}

static bool decode(const uint8_t *bytes, const lc_layout *layout, uint64_t address,
                   lc_raw_frame *frame)
{
    frame->address = address;
    frame->previous = lc_u64_at(bytes, layout->frame_previous);
    frame->code = lc_u64_at(bytes, layout->frame_code) & ~(uint64_t)layout->frame_tags;
    frame->instr = lc_u64_at(bytes, layout->frame_instr);
    frame->stack = layout->frame_stack_bytes == 8 ? lc_u64_at(bytes, layout->frame_stack)
                                                  : lc_u32_at(bytes, layout->frame_stack);
    frame->owner = bytes[layout->frame_owner];
    frame->shim = frame->owner >= layout->owner_shim;
    /* A frame that a frame object owns has ended: it is in no running chain. */
    return frame->owner < layout->owner_end && frame->owner != layout->owner_frame_object &&
           frame->previous != address && (frame->shim || plausible(frame->code));
}

/* A generator's frame is unlinked by setting its `previous` to NULL: it then looks like the outermost
 * one, of a chain that it is no longer part of. */
static bool ends_well(const lc_chain *chain, const lc_layout *layout)
{
    if (chain->cut || chain->count == 0) {
        return true;
    }
    const lc_raw_frame *last = &chain->frames[chain->count - 1];
    return layout->shim_ends_chain ? last->shim : last->owner != layout->owner_generator;
}

lc_chain_result lc_chain_follow(lc_snapshot *snapshot, const lc_layout *layout,
                                uint64_t thread_state, uint32_t limit, lc_chain *chain,
                                lc_read_plan *plan)
{
    chain->count = 0;
    chain->cut = false;
    chain->moved = false;
    uint64_t word = 0;
    const lc_chain_result result = top_word(snapshot, layout, thread_state, &word, plan);
    if (result != LC_CHAIN_OK) {
        return result;
    }
    lc_read_plan_add(plan, word, 8);
    const uint8_t *top = lc_snapshot_get(snapshot, word, 8);
    if (top == NULL) {
        return LC_CHAIN_UNREADABLE;
    }
    const uint64_t innermost = lc_u64_at(top, 0);
    uint64_t address = innermost;
    uint32_t shown = 0;
    while (address != 0) {
        if (chain->count == LC_CHAIN_MAX || shown == limit) {
            chain->cut = true; /* also the bound of a chain that bites its tail */
            break;
        }
        if (!plausible(address)) {
            return LC_CHAIN_BROKEN;
        }
        const uint8_t *bytes = lc_snapshot_get_frame(snapshot, address, layout->frame_bytes);
        if (bytes == NULL) {
            return LC_CHAIN_UNREADABLE;
        }
        lc_raw_frame *frame = &chain->frames[chain->count++];
        if (!decode(bytes, layout, address, frame)) {
            return LC_CHAIN_BROKEN;
        }
        lc_read_plan_add(plan, address, layout->frame_bytes);
        shown += !frame->shim;
        address = frame->previous;
    }
    if (!ends_well(chain, layout)) {
        return LC_CHAIN_BROKEN;
    }
    chain->moved = top_moved(snapshot, word, innermost, plan);
    return LC_CHAIN_OK;
}

static bool same_activation(const lc_raw_frame *a, const lc_raw_frame *b)
{
    return a->address == b->address && a->previous == b->previous && a->owner == b->owner &&
           a->code == b->code;
}

static bool same_words(const lc_raw_frame *a, const lc_raw_frame *b)
{
    if (a->shim && b->shim) { /* CPython sets only some of a shim's words */
        return a->address == b->address && a->previous == b->previous && a->owner == b->owner;
    }
    return same_activation(a, b) && a->instr == b->instr && a->stack == b->stack;
}

/* Chains that were cut end at different frames if the depth changed: finds where they overlap. */
static bool align(const lc_chain *a, const lc_chain *b, uint32_t *end_a, uint32_t *end_b)
{
    *end_a = a->count;
    *end_b = b->count;
    if (a->count == 0 || b->count == 0) {
        return false;
    }
    if (!a->cut && !b->cut) {
        return true;
    }
    for (uint32_t i = b->count; i > 0; i--) {
        if (b->frames[i - 1].address == a->frames[a->count - 1].address) {
            *end_b = i;
            return true;
        }
    }
    for (uint32_t i = a->count; i > 0; i--) {
        if (a->frames[i - 1].address == b->frames[b->count - 1].address) {
            *end_a = i;
            return true;
        }
    }
    return false;
}

lc_agreement lc_chains_agree(const lc_chain *first, const lc_chain *second)
{
    uint32_t i = 0;
    uint32_t j = 0;
    if (!align(first, second, &i, &j)) {
        return (lc_agreement){.any = false};
    }
    lc_agreement agreement = {.any = false};
    while (i > 0 && j > 0) {
        const lc_raw_frame *a = &first->frames[--i];
        const lc_raw_frame *b = &second->frames[--j];
        if (!same_activation(a, b) && !(a->shim && b->shim && same_words(a, b))) {
            break;
        }
        agreement = (lc_agreement){.any = true, .in_first = i, .in_second = j};
        if (!same_words(a, b)) {
            break; /* it moved on: what it called in one reading is not what it called in the other */
        }
    }
    const bool innermost_doubtful = (first->moved && agreement.in_first == 0) ||
                                    (second->moved && agreement.in_second == 0);
    if (agreement.any && innermost_doubtful) {
        agreement.in_first++;
        agreement.in_second++;
        agreement.any = agreement.in_first < first->count && agreement.in_second < second->count;
    }
    return agreement;
}

bool lc_chains_equal(const lc_chain *first, const lc_chain *second)
{
    if (first->count != second->count || first->cut != second->cut) {
        return false;
    }
    for (uint32_t i = 0; i < first->count; i++) {
        if (!same_words(&first->frames[i], &second->frames[i])) {
            return false;
        }
    }
    return true;
}
