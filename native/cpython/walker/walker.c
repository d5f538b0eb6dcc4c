/* Two readings of a stack, compared; docs/internals/walker.md has the argument. In short:
 *
 *   - a reading whose thread did not run meanwhile, by its CPU clock, is one state;
 *   - of two readings in a row, words that agree had their value all the time in between, unless they
 *     changed and changed back; so all that agrees was true together, at the time between them;
 *   - of frames that come and go too fast for that, copies that were made within a microsecond
 *     (chain_proof.c);
 *   - facts of a code object are read between two proofs that it is the same object;
 *   - further readings, at random distances, make "changed and changed back, each time in step"
 *     improbable.
 */
#include "cpython/walker/walker.h"

#include "core/clock/clock.h"
#include "cpython/gil/threads.h"

#define TRIES 24u
#define WHOLE_TRIES 8u /* attempts; then the outer frames alone will do */
#define TRIES_AT_ONCE 2u
#define CONFIRMED_FRAMES 16u   /* from the innermost one: outer frames move less */
#define CONFIRMATIONS_QUIET 1u /* the two readings were equal to the last word: a C call, mostly */
#define CONFIRMATIONS_MOVING 3u
#define LOOKS_MAX 9u /* for as many confirmations: of a chain that moves, some looks find none */
#define HEAD_RANGES 24u
#define SPIN_MASK 255u

#if defined(__x86_64__)
#define RELAX() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define RELAX() __asm__ volatile("yield")
#else
#define RELAX() ((void)0)
#endif

static void wait_a_random_moment(lc_walker *walker)
{
    walker->random ^= walker->random << 13;
    walker->random ^= walker->random >> 7;
    walker->random ^= walker->random << 17;
    for (uint64_t i = walker->random >> 32 & SPIN_MASK; i > 0; i -= i < 8 ? i : 8) {
        RELAX();
    }
}

/* ---- memory of threads ----------------------------------------------------------------------- */

static lc_remembered_thread *remembered(lc_walker *walker, uint64_t thread_state)
{
    lc_remembered_thread *oldest = &walker->threads[0];
    for (uint32_t i = 0; i < LC_REMEMBERED_THREADS; i++) {
        lc_remembered_thread *thread = &walker->threads[i];
        if (thread->thread_state == thread_state) {
            thread->used_at = walker->cache.walk;
            return thread;
        }
        if (thread->used_at < oldest->used_at) {
            oldest = thread;
        }
    }
    oldest->thread_state = thread_state;
    oldest->used_at = walker->cache.walk;
    oldest->tid = 0;
    oldest->still.still_cpu_ns = 0;
    lc_read_plan_clear(&oldest->plan);
    memset(&oldest->plan.kept_tops, 0, sizeof oldest->plan.kept_tops);
    memset(&oldest->plan.kept_frames, 0, sizeof oldest->plan.kept_frames);
    return oldest;
}

static void copy_plan(lc_read_plan *to, const lc_read_plan *from)
{
    to->count = from->count;
    memcpy(to->ranges, from->ranges, from->count * sizeof from->ranges[0]);
    to->tops = from->tops;
    to->kept_tops = from->kept_tops;
    to->kept_frames = from->kept_frames;
}

/* ---- one reading ----------------------------------------------------------------------------- */

static uint64_t cpu_now(const lc_walker *walker, uint32_t tid)
{
    uint64_t ns = 0;
    return walker->clock_proves && lc_thread_cpu_ns(tid, &ns) ? ns : 0;
}

static bool still(const lc_reading *reading)
{
    return reading->cpu_before_ns != 0 && reading->cpu_before_ns == reading->cpu_after_ns;
}

static void keep_head(lc_read_plan *head, const lc_read_plan *plan)
{
    head->count = plan->count < HEAD_RANGES ? plan->count : HEAD_RANGES;
    head->tops = plan->tops;
    memcpy(head->ranges, plan->ranges, head->count * sizeof plan->ranges[0]);
}

static lc_chain_result read_chain(lc_cpython_source *source, lc_reading *reading, uint64_t thread_state)
{
    lc_walker *walker = source->walker;
    lc_snapshot_take(&reading->snapshot, source->reader, &walker->plan);
    lc_read_plan_clear(&walker->plan);
    const lc_chain_result result = lc_chain_follow(&reading->snapshot, &source->layout, thread_state,
                                                   LC_WALK_FRAMES_MAX, &reading->chain, &walker->plan);
    keep_head(&walker->head_plan, &walker->plan);
    return result;
}

/* Whether the memory still is a thread state of a living interpreter, and of this native thread. */
static bool is_thread(const lc_cpython_source *source, lc_reading *reading, uint64_t thread_state,
                      lc_remembered_thread *thread)
{
    const lc_layout *l = &source->layout;
    const uint8_t *words = lc_snapshot_get(&reading->snapshot, thread_state, l->thread_native_id + 8);
    if (words == NULL || !lc_interp_known(source, lc_u64_at(words, l->thread_interp))) {
        return false;
    }
    const uint32_t tid = (uint32_t)lc_u64_at(words, l->thread_native_id);
    /* Another interpreter's memory can be gone, at its end, with code objects whose deaths were not
     * counted. */
    reading->counted = source->deaths != NULL && lc_u64_at(words, l->thread_interp) == source->at.interp;
    if (tid != thread->tid) {
        thread->tid = tid;
        reading->cpu_before_ns = 0; /* was another thread's */
    }
    return true;
}

/* ---- functions that come and go ------------------------------------------------------------------ */

/* A stack is given out more easily while it does not move than while a function of Python is called, so
 * samples of a C function that calls one show the C function's caller too often. That there were others is
 * noted. */
static void note_innermost(lc_walker *walker, const lc_chain *chain)
{
    if (chain->count == 0 || chain->frames[0].shim) {
        return;
    }
    const lc_raw_frame *frame = &chain->frames[0];
    const bool another = frame->address != walker->innermost || frame->code != walker->innermost_code;
    walker->came_and_went |= chain->moved || chain->passed || (walker->innermost != 0 && another);
    walker->innermost = frame->address;
    walker->innermost_code = frame->code;
}

/* ---- from a reading to a stack ----------------------------------------------------------------- */

static lc_walk_result fill(const lc_reading *reading, uint32_t from, bool inner_cut, bool came_and_went,
                           lc_stack *out)
{
    out->count = 0;
    out->came_and_went = came_and_went;
    out->truncated = reading->chain.cut;
    out->inner_cut = inner_cut;
    out->hash = lc_mix(0, out->inner_cut);
    for (uint32_t i = from; i < reading->chain.count; i++) {
        const lc_walk_frame *frame = &reading->frames[i];
        if (!frame->shown) {
            continue;
        }
        if (out->count == LC_STACK_FRAMES_MAX) {
            out->truncated = true;
            break;
        }
        const lc_code_facts *facts = &reading->codes[frame->code].entry->facts;
        out->frames[out->count++] = (lc_frame){
            .code = facts,
            .line = frame->position.line,
            .end_line = frame->position.end_line,
            .column = frame->position.column,
            .end_column = frame->position.end_column,
        };
        out->hash = lc_mix(out->hash, facts->serial);
        out->hash =
            lc_mix(out->hash, (uint64_t)frame->position.line << 32 | (uint64_t)frame->position.column << 16 |
                                  frame->position.end_column);
    }
    return out->count == 0 ? LC_WALK_EMPTY : LC_WALK_OK;
}

/* More looks at the frames that the first reading proved, out of step with the program. Where a shortened
 * stack will do, what one of them does not find is left out. */
static bool confirmed(lc_cpython_source *source, uint64_t thread_state, const lc_reading *reading,
                      uint32_t wanted, bool want_whole, lc_proof *proof)
{
    lc_walker *walker = source->walker;
    lc_chain *chain = &walker->confirmation_chain;
    uint32_t confirmations = 0;
    for (uint32_t look = 0; look < LOOKS_MAX && confirmations < wanted; look++) {
        wait_a_random_moment(walker);
        lc_snapshot_take(&walker->confirmation, source->reader, &walker->head_plan);
        if (lc_chain_follow(&walker->confirmation, &source->layout, thread_state,
                            CONFIRMED_FRAMES + proof->agreed, chain, NULL) != LC_CHAIN_OK) {
            continue;
        }
        note_innermost(walker, chain);
        const lc_agreement agreement = lc_chains_agree(&reading->chain, chain);
        if (!agreement.any || (want_whole && agreement.in_first > proof->agreed)) {
            return false;
        }
        if (agreement.in_first > proof->agreed) {
            const uint32_t from = agreement.in_first;
            *proof = (lc_proof){
                .any = true, .cut = true, .seen = from, .from = from, .in_both = from, .agreed = from};
        }
        confirmations++;
    }
    return confirmations == wanted;
}

/* What the two readings prove of the second. A whole stack is wanted; in the end, the outer frames that
 * did not move are better than nothing: they hold most of a stall. */
static bool proven(lc_cpython_source *source, uint64_t thread_state, lc_reading *first, lc_reading *second,
                   bool want_whole, lc_proof *proof)
{
    lc_reading_settle(source, first, &second->snapshot);
    *proof = lc_chains_prove(&first->chain, &second->chain);
    if (!proof->any || (want_whole && proof->cut)) {
        return false;
    }
    const uint32_t from = lc_reading_trusted_from(source, second, proof->from, proof->in_both);
    proof->cut |= from != proof->from; /* no other try would trust them: the next walk will */
    proof->from = from;
    const bool quiet = lc_chains_equal(&first->chain, &second->chain);
    if (!confirmed(source, thread_state, second, quiet ? CONFIRMATIONS_QUIET : CONFIRMATIONS_MOVING,
                   want_whole, proof) ||
        !lc_reading_settle(source, second, &source->walker->confirmation) ||
        lc_reading_trusted_from(source, second, proof->from, proof->in_both) != proof->from) {
        return false;
    }
    const uint32_t outlived = lc_reading_outlived_from(source, first, second, proof->from);
    if (outlived != proof->from) {
        if (want_whole || outlived == second->chain.count) {
            return false;
        }
        *proof = (lc_proof){.any = true,
                            .cut = true,
                            .seen = outlived,
                            .from = outlived,
                            .in_both = outlived,
                            .agreed = outlived};
    }
    return true;
}

typedef enum { READ, READ_FAILED, READ_EMPTY } read_outcome;

static read_outcome read_stack(lc_cpython_source *source, lc_remembered_thread *thread,
                               uint64_t cpu_before_ns, lc_reading *reading, lc_walk_result *why)
{
    reading->code_count = 0;
    reading->chain.count = 0;
    reading->learned = false;
    reading->counted = false;
    reading->cpu_before_ns = cpu_before_ns;
    const lc_chain_result chain = read_chain(source, reading, thread->thread_state);
    const bool ours = is_thread(source, reading, thread->thread_state, thread);
    *why = chain == LC_CHAIN_UNREADABLE || !ours ? LC_WALK_UNREADABLE : LC_WALK_MOVED;
    if (chain != LC_CHAIN_OK || !ours) {
        reading->chain.count = 0;
        return READ_FAILED;
    }
    if (reading->chain.count == 0) {
        return READ_EMPTY;
    }
    if (!lc_reading_find_codes(source, reading)) {
        return READ_FAILED;
    }
    lc_reading_find_positions(source, reading);
    reading->cpu_after_ns = reading->cpu_before_ns == 0 ? 0 : cpu_now(source->walker, thread->tid);
    return READ;
}

/* ---- a thread that has not run since ------------------------------------------------------------- */

static void copy_stack(lc_stack *to, const lc_stack *from)
{
    memcpy(to, from, offsetof(lc_stack, frames) + from->count * sizeof from->frames[0]);
}

static void keep_still(const lc_walker *walker, lc_remembered_thread *thread, const lc_stack *stack)
{
    thread->cache_loads = walker->cache.loads;
    copy_stack(&thread->still, stack);
}

/* The CPU time is that of a reading that was one state: the thread has not run since, so it has that
 * stack. */
static bool is_as_before(const lc_walker *walker, const lc_remembered_thread *thread, uint64_t cpu_ns)
{
    return cpu_ns != 0 && cpu_ns == thread->still.still_cpu_ns && thread->cache_loads == walker->cache.loads;
}

lc_walk_result lc_walk(lc_cpython_source *source, uint64_t thread_state, lc_stack *out)
{
    lc_walker *walker = source->walker;
    walker->cache.walk++;
    walker->came_and_went = false;
    walker->innermost = 0;
    lc_walk_count(&source->counts.walks);
    lc_remembered_thread *thread = remembered(walker, thread_state);
    uint64_t cpu_before_ns = cpu_now(walker, thread->tid);
    if (is_as_before(walker, thread, cpu_before_ns)) {
        lc_walk_count(&source->counts.still);
        lc_walk_count(&source->counts.unmoved);
        copy_stack(out, &thread->still);
        return LC_WALK_OK;
    }
    thread->still.still_cpu_ns = 0;
    copy_plan(&walker->plan, &thread->plan);
    out->count = 0;
    out->truncated = false;
    out->inner_cut = false;
    out->came_and_went = false;
    out->hash = 0;
    out->still_cpu_ns = 0;
    lc_walk_result why = LC_WALK_UNREADABLE;
    lc_reading *first = NULL;
    for (uint32_t try = 0; try < TRIES; try++) {
        if (try >= TRIES_AT_ONCE) {
            wait_a_random_moment(walker);
        }
        lc_reading *reading = &walker->readings[first == &walker->readings[0]];
        const read_outcome outcome = read_stack(source, thread, cpu_before_ns, reading, &why);
        cpu_before_ns = 0; /* a thread that ran during the first try will hardly be still during the next */
        if (outcome == READ_EMPTY) {
            why = LC_WALK_EMPTY;
            break;
        }
        if (outcome == READ_FAILED) {
            lc_reading_settle_now(source, reading);
            copy_plan(&walker->plan, &thread->plan); /* still the best guess */
            continue;
        }
        copy_plan(&thread->plan, &walker->plan);
        note_innermost(walker, &reading->chain);
        if (still(reading)) {
            lc_walk_count(&source->counts.still);
            lc_reading_trust(reading, 0, true);
            const lc_walk_result result = fill(reading, 0, false, false, out);
            out->still_cpu_ns = reading->cpu_after_ns;
            if (result == LC_WALK_OK) {
                keep_still(walker, thread, out);
            }
            return result;
        }
        lc_proof proof = {.any = false};
        if (first != NULL && proven(source, thread_state, first, reading, try < WHOLE_TRIES, &proof)) {
            lc_reading_trust(reading, proof.seen, false);
            lc_walk_count(proof.cut ? &source->counts.shortened : &source->counts.agreed);
            return fill(reading, proof.from, proof.cut, walker->came_and_went || proof.from > 0, out);
        }
        if (first != NULL) {
            lc_walk_count(&source->counts.retries);
        }
        why = LC_WALK_MOVED;
        first = reading;
    }
    if (first != NULL) {
        lc_reading_settle_now(source, first);
    }
    return why;
}
