#include "cpython/walker/chain.h"

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
        agreement = (lc_agreement){.any = true, .unmoved = same_words(a, b), .in_first = i, .in_second = j};
        if (!agreement.unmoved) {
            break; /* it moved on: what it called in one reading is not what it called in the other */
        }
    }
    const bool innermost_doubtful =
        (first->moved && agreement.in_first == 0) || (second->moved && agreement.in_second == 0);
    if (agreement.any && innermost_doubtful) {
        agreement.in_first++;
        agreement.in_second++;
        agreement.any = agreement.in_first < first->count && agreement.in_second < second->count;
    }
    return agreement;
}

static bool called_without_c(const lc_raw_frame *caller, const lc_raw_frame *callee)
{
    return !caller->shim && !callee->shim && !callee->by_c;
}

/* Whether the frame at `inner` was called by the next one outside, both of a quick copy: the caller is in
 * a call of that sort, and at the same instruction before and after the callee was copied. Where callees
 * come and go as quickly as copies are made, the other reading has to have the caller at that instruction,
 * too (`in_both`). */
static bool is_called(const lc_chain *chain, uint32_t inner, bool in_both)
{
    const lc_raw_frame *caller = &chain->frames[inner + 1];
    const lc_raw_frame *callee = &chain->frames[inner];
    if (caller->shim) {
        return true;
    }
    if (!(called_without_c(caller, callee) ? caller->calls : caller->runs)) {
        return false;
    }
    if (caller->quick == callee->quick && caller->address < callee->address) {
        return caller->stood;
    }
    const bool on_data_stack = caller->owner == 0 && callee->owner == 0;
    return caller->stood_long && callee->ran_on &&
           (in_both || (caller->calls && !caller->runs && on_data_stack));
}

/* The innermost frame of a quick copy that has not ended: so has none that it was called by. Frames inside
 * of it that it called without C code have. `quick`: none. */
static uint32_t innermost_live(const lc_chain *chain)
{
    if (chain->quick > 0 && !chain->frames[0].told) {
        return 0;
    }
    for (uint32_t i = 0; i < chain->quick; i++) {
        const lc_raw_frame *frame = &chain->frames[i];
        if (frame->alive) {
            return frame->settled ? i : chain->quick;
        }
        if (i + 1 < chain->count && !called_without_c(&chain->frames[i + 1], frame)) {
            break;
        }
    }
    return chain->quick;
}

lc_proof lc_chains_prove(const lc_chain *first, const lc_chain *second)
{
    const lc_agreement agreement = lc_chains_agree(first, second);
    if (!agreement.any) {
        return (lc_proof){.any = false};
    }
    const uint32_t innermost = innermost_live(second);
    const uint32_t quick = innermost < second->quick ? second->quick : 0;
    const uint32_t live = quick == 0 ? 0 : innermost;
    uint32_t from = agreement.in_second < live ? live : agreement.in_second;
    bool in_both = agreement.unmoved || from > agreement.in_second;
    while (from > live && from < quick && is_called(second, from - 1, in_both)) {
        from--;
        in_both = false;
    }
    uint32_t agreed = from < agreement.in_second ? agreement.in_second : from;
    while (agreed + 1 < quick && is_called(second, agreed, true)) {
        agreed++;
    }
    /* its callee was not seen */
    const bool calls = quick > 0 && second->frames[from].calls && !second->frames[from].runs;
    return (lc_proof){.any = true,
                      .cut = from != live || calls,
                      .seen = from,
                      .from = from,
                      .in_both = agreement.in_second,
                      .agreed = agreed};
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
