#include "cpython/walker/chain.h"

#define PAGE_BYTES 4096u
#define CALLED_MAX 8u         /* frames that begin between a look and a copy */
#define FRAMES_BEFORE_KEPT 3u /* of the chain, in its plan */
#define CODE_BYTES 128u       /* around an instruction, in a plan */
#define ROOM_BYTES 512u       /* for the frames that the innermost one calls: they lie right behind it */

static bool plausible(uint64_t address)
{
    return address >= 4096 && address < UINT64_C(1) << 56 && address % 8 == 0;
}

/* Where the thread state says which frame is the innermost one: a word of its own, or (3.11, 3.12) of a
 * _PyCFrame that it leads to. */
typedef struct {
    uint64_t word_at[2];
    uint64_t word[2];
    uint32_t count;
} top_words;

static lc_chain_result find_top(lc_snapshot *snapshot, const lc_layout *layout, uint64_t thread_state,
                                top_words *top, lc_read_plan *plan)
{
    const uint32_t thread_bytes = layout->thread_native_id + 8; /* behind all that is read of it */
    if (!plausible(thread_state)) {
        return LC_CHAIN_UNREADABLE;
    }
    lc_read_plan_add_top(plan, thread_state, thread_bytes);
    const uint8_t *thread = lc_snapshot_get(snapshot, thread_state, thread_bytes);
    if (thread == NULL) {
        return LC_CHAIN_UNREADABLE;
    }
    *top = (top_words){.count = 1,
                       .word_at = {thread_state + layout->thread_frame},
                       .word = {lc_u64_at(thread, layout->thread_frame)}};
    if (layout->cframe_frame == LC_ABSENT) {
        return LC_CHAIN_OK;
    }
    if (!plausible(top->word[0])) {
        return LC_CHAIN_BROKEN;
    }
    top->count = 2;
    top->word_at[1] = top->word[0] + layout->cframe_frame;
    const uint8_t *word = lc_snapshot_get(snapshot, top->word_at[1], 8);
    if (word == NULL) {
        return LC_CHAIN_UNREADABLE;
    }
    top->word[1] = lc_u64_at(word, 0);
    return LC_CHAIN_OK;
}

/* Whether the words were read together with the quick ranges. */
static bool top_is_quick(const lc_snapshot *snapshot, const top_words *top)
{
    return lc_snapshot_is_top(snapshot, top->word_at[0], 8) &&
           (top->count == 1 || lc_snapshot_is_top(snapshot, top->word_at[1], 8));
}

static bool innermost_lives(const lc_chain *chain)
{
    return chain->quick > 0 && chain->frames[0].alive && chain->frames[0].settled;
}

/* Or calls, or is just being made. */
static bool innermost_ended(const lc_chain *chain)
{
    return chain->quick > 0 && chain->frames[0].told && !chain->frames[0].alive && !chain->frames[0].shim;
}

static bool top_moved(const lc_snapshot *snapshot, const top_words *top)
{
    for (uint32_t i = 0; i < top->count; i++) {
        uint64_t now = 0;
        if (!lc_read(snapshot->reader, top->word_at[i], &now, sizeof now) || now != top->word[i]) {
            return true;
        }
    }
    return false;
}

static uint32_t count_quick(const lc_chain *chain)
{
    uint32_t count = 0;
    while (count < chain->count && chain->frames[count].quick >= 0) {
        count++;
    }
    return count;
}

static void add_kept(lc_read_plan *plan, void (*add)(lc_read_plan *, uint64_t, uint32_t),
                     const lc_kept_ranges *kept)
{
    for (uint32_t i = 0; i < LC_KEPT_RANGES && kept->ranges[i].bytes > 0; i++) {
        add(plan, kept->ranges[i].address, kept->ranges[i].bytes);
    }
}

static void plan_top(lc_read_plan *plan, const top_words *top)
{
    if (top->count == 2) {
        lc_keep_range(&plan->kept_tops, top->word_at[1], 8);
        add_kept(plan, lc_read_plan_add_top, &plan->kept_tops);
    }
}

/* The code at the instructions of the quick frames, where it tells what they do. */
static void plan_instructions(lc_read_plan *plan, const lc_layout *layout, const lc_chain *chain)
{
    for (uint32_t i = 0; i < chain->quick && layout->opcodes != NULL; i++) {
        if (!chain->frames[i].shim) {
            lc_read_plan_add_object(plan, chain->frames[i].instr & ~(uint64_t)(CODE_BYTES - 1), CODE_BYTES);
        }
    }
}

/* With the innermost frame, if it is one of the data stack, goes what its page has behind it: frames that
 * it calls. */
static void plan_frames(lc_read_plan *plan, const lc_layout *layout, const lc_chain *chain)
{
    const uint32_t bytes = layout->frame_bytes;
    const lc_raw_frame *innermost = &chain->frames[0];
    const uint32_t left = PAGE_BYTES - (uint32_t)(innermost->address % PAGE_BYTES);
    const uint32_t with_room = left < bytes + ROOM_BYTES ? left : bytes + ROOM_BYTES;
    lc_keep_range(&plan->kept_frames, innermost->address,
                  innermost->owner != 0 || with_room < bytes ? bytes : with_room);
    if (chain->count > 1 && chain->frames[1].shim) {
        lc_keep_range(&plan->kept_frames, chain->frames[1].address, bytes);
    }
    for (uint32_t i = 0; i < chain->count; i++) {
        if (i == FRAMES_BEFORE_KEPT) {
            add_kept(plan, lc_read_plan_add, &plan->kept_frames);
        }
        lc_read_plan_add(plan, chain->frames[i].address, bytes);
    }
    if (chain->count <= FRAMES_BEFORE_KEPT) {
        add_kept(plan, lc_read_plan_add, &plan->kept_frames);
    }
}

static bool decode(const uint8_t *bytes, const lc_layout *layout, uint64_t address, lc_raw_frame *frame)
{
    *frame = (lc_raw_frame){.address = address, .quick = -1};
    frame->previous = lc_u64_at(bytes, layout->frame_previous);
    frame->code = lc_u64_at(bytes, layout->frame_code) & ~(uint64_t)layout->frame_tags;
    frame->instr = lc_u64_at(bytes, layout->frame_instr);
    frame->stack = layout->frame_stack_bytes == 8 ? lc_u64_at(bytes, layout->frame_stack)
                                                  : lc_u32_at(bytes, layout->frame_stack);
    frame->owner = bytes[layout->frame_owner];
    frame->shim = frame->owner >= layout->owner_shim;
    frame->by_c = layout->frame_entry != LC_ABSENT && bytes[layout->frame_entry] != 0;
    const bool tells = layout->frame_stack_bytes == 4; /* `stacktop`: -1 while the frame executes */
    frame->told = tells;
    frame->runs = tells && (int32_t)frame->stack < 0;
    frame->calls = tells && !frame->runs;
    frame->alive = frame->runs;
    /* A frame that a frame object owns has ended: it is in no running chain. */
    return frame->owner < layout->owner_end && frame->owner != layout->owner_frame_object &&
           frame->previous != address && (frame->shim || plausible(frame->code));
}

static bool is_activation(const uint8_t *bytes, const lc_layout *layout, const lc_raw_frame *frame,
                          lc_raw_frame *copy)
{
    return decode(bytes, layout, frame->address, copy) && copy->code == frame->code &&
           copy->previous == frame->previous;
}

/* From 3.14 on no word of a frame tells what it does, but the instruction does that it is at. */
static void tell_by_instruction(lc_snapshot *snapshot, const lc_layout *layout, lc_raw_frame *frame)
{
    const bool tells = layout->opcodes != NULL && !frame->shim;
    const uint8_t *opcode = tells ? lc_snapshot_get(snapshot, frame->instr, 1) : NULL;
    if (opcode != NULL) {
        const uint8_t kind = layout->opcodes[*opcode];
        frame->told = true;
        frame->alive = kind != LC_OPCODE_ENDS;
        frame->runs = kind == LC_OPCODE_RUNS || kind == LC_OPCODE_EITHER;
        frame->calls = kind == LC_OPCODE_CALLS || kind == LC_OPCODE_EITHER;
    }
}

/* From 3.14 on a frame of the data stack has no code any more when it is given back (clear_thread_frame). */
static bool has_ended(const lc_layout *layout, const lc_raw_frame *frame)
{
    return layout->opcodes != NULL && frame->owner == 0 && frame->code == 0;
}

/* The frame at the address; of a quick one, the first copy, compared with the others. */
static lc_chain_result read_frame(lc_snapshot *snapshot, const lc_layout *layout, uint64_t address,
                                  lc_raw_frame *frame)
{
    const uint8_t *copies[LC_QUICK_COPIES];
    const int32_t quick = lc_snapshot_quick(snapshot, address, layout->frame_bytes, copies);
    const uint8_t *bytes =
        quick >= 0 ? copies[0] : lc_snapshot_get_frame(snapshot, address, layout->frame_bytes);
    if (bytes == NULL) {
        return LC_CHAIN_UNREADABLE;
    }
    const bool is_frame = decode(bytes, layout, address, frame);
    frame->quick = quick;
    if (!is_frame) {
        return has_ended(layout, frame) ? LC_CHAIN_ENDED : LC_CHAIN_BROKEN;
    }
    if (quick >= 0) {
        lc_raw_frame copy;
        frame->stood = memcmp(bytes, copies[1], layout->frame_bytes) == 0;
        frame->stood_long = memcmp(bytes, copies[2], layout->frame_bytes) == 0;
        frame->settled = is_activation(copies[1], layout, frame, &copy);
        frame->ran_on = is_activation(copies[2], layout, frame, &copy) && copy.runs == frame->runs;
    }
    return LC_CHAIN_OK;
}

/* Whether it is the frame itself or a shim, in a quick copy, that it is the next one outside of. */
static bool leads_to(lc_snapshot *snapshot, const lc_layout *layout, uint64_t previous, uint64_t frame,
                     lc_raw_frame *shim)
{
    shim->address = 0;
    if (previous == frame) {
        return true;
    }
    const uint8_t *copies[LC_QUICK_COPIES];
    if (layout->frame_entry == LC_ABSENT && plausible(previous) &&
        lc_snapshot_quick(snapshot, previous, layout->frame_bytes, copies) >= 0 &&
        read_frame(snapshot, layout, previous, shim) == LC_CHAIN_OK && shim->shim &&
        shim->previous == frame) {
        return true;
    }
    shim->address = 0;
    return false;
}

/* The frame behind `caller` on the data stack that it has called, and the shim between (address 0: none). */
static bool find_callee(lc_snapshot *snapshot, const lc_layout *layout, const lc_raw_frame *caller,
                        lc_raw_frame *shim, lc_raw_frame *callee)
{
    const lc_range *range = &snapshot->ranges[snapshot->tops + (uint32_t)caller->quick];
    const uint64_t end = range->address + range->bytes - layout->frame_bytes;
    for (uint64_t at = caller->address + layout->frame_bytes; at <= end; at += 8) {
        if (read_frame(snapshot, layout, at, callee) == LC_CHAIN_OK && callee->owner == 0 &&
            leads_to(snapshot, layout, callee->previous, caller->address, shim)) {
            return true;
        }
    }
    return false;
}

/* Since the look at the innermost frame it may have called: adds the frames that are alive by now, if
 * their copies have them. Frames that have ended lie there, too, but none of them runs. */
static void add_called(lc_snapshot *snapshot, const lc_layout *layout, lc_chain *chain)
{
    lc_raw_frame called[CALLED_MAX]; /* outermost first */
    uint32_t count = 0;
    const lc_raw_frame *caller = &chain->frames[0];
    lc_raw_frame shim;
    lc_raw_frame callee;
    while (count + 2 <= CALLED_MAX && caller->quick >= 0 && caller->owner == 0 &&
           find_callee(snapshot, layout, caller, &shim, &callee) &&
           (shim.address == 0 && !callee.by_c ? caller->calls : caller->runs)) {
        if (shim.address != 0) {
            called[count++] = shim;
        }
        called[count++] = callee;
        caller = &called[count - 1];
    }
    if (count == 0 || !caller->alive || chain->count + count > LC_CHAIN_MAX) {
        return;
    }
    memmove(&chain->frames[count], &chain->frames[0], chain->count * sizeof chain->frames[0]);
    for (uint32_t i = 0; i < count; i++) {
        chain->frames[count - 1 - i] = called[i];
    }
    chain->count += count;
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

lc_chain_result lc_chain_follow(lc_snapshot *snapshot, const lc_layout *layout, uint64_t thread_state,
                                uint32_t limit, lc_chain *chain, lc_read_plan *plan)
{
    chain->count = 0;
    chain->cut = false;
    chain->moved = false;
    chain->passed = false;
    chain->quick = 0;
    top_words top = {.count = 0};
    const lc_chain_result result = find_top(snapshot, layout, thread_state, &top, plan);
    if (result != LC_CHAIN_OK) {
        return result;
    }
    uint64_t address = top.word[top.count - 1];
    uint32_t shown = 0;
    uint32_t ended = 0;
    while (address != 0) {
        if (chain->count == LC_CHAIN_MAX || shown == limit) {
            chain->cut = true; /* also the bound of a chain that bites its tail */
            break;
        }
        if (!plausible(address)) {
            return LC_CHAIN_BROKEN;
        }
        lc_raw_frame *frame = &chain->frames[chain->count++];
        const lc_chain_result read = read_frame(snapshot, layout, address, frame);
        if (read == LC_CHAIN_ENDED && chain->count == 1 && ended++ < CALLED_MAX) {
            chain->count = 0; /* since the look */
            chain->passed = true;
            address = frame->previous;
            continue;
        }
        if (read != LC_CHAIN_OK) {
            return read;
        }
        if (ended > 0 && chain->frames[0].shim) {
            return LC_CHAIN_BROKEN; /* of C code that is gone, too */
        }
        shown += !frame->shim;
        address = frame->previous;
    }
    if (!ends_well(chain, layout)) {
        return LC_CHAIN_BROKEN;
    }
    if (plan != NULL) {
        plan_top(plan, &top);
    }
    if (plan != NULL && chain->count > 0) {
        plan_frames(plan, layout, chain);
    }
    if (chain->count > 0 && top_is_quick(snapshot, &top)) {
        chain->quick = count_quick(chain);
        for (uint32_t i = 0; i < chain->quick; i++) {
            tell_by_instruction(snapshot, layout, &chain->frames[i]);
        }
        if (layout->opcodes == NULL) { /* else what lies behind may be the rest of a frame that has ended */
            add_called(snapshot, layout, chain);
            chain->quick = count_quick(chain);
        }
        plan_instructions(plan, layout, chain);
    }
    chain->moved = innermost_ended(chain) || (!innermost_lives(chain) && top_moved(snapshot, &top));
    return LC_CHAIN_OK;
}
