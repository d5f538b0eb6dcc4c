/* Calls that took too long outside of what loops and watches judge: noted when they end, and told at once.
 *
 * What a turn is in, its stall judges. A call around turns, as a program's main() is around its loop, took no longer than the loop did.
 */
#include "module/agent.h"
#include "module/thread_lane.h"
#include "probes/methods/tracer_state.h"

static bool is_judged_otherwise(const lc_calls *calls)
{
    const lc_lane *lane = lc_thread_lane_peek();
    return lane != NULL && (lc_lane_in_turn(lane) || lc_calls_has_begun_in_last(calls, LC_LOAD(lane->turn_begin)));
}

/* The main module: it is the program, and no function of it. */
static bool is_program(const lc_calls *calls, PyObject *code)
{
    return calls->depth == 0 && !(((PyCodeObject *)code)->co_flags & CO_OPTIMIZED);
}

void lc_note_slow(PyObject *code)
{
    lc_calls *calls = lc_traced_own.calls;
    if (!is_program(calls, code) && !is_judged_otherwise(calls) && lc_calls_note_slow(calls)) {
        lc_the_tracer.slow++;
        atomic_store(&lc_the_agent.courier.has_notes, true);
        lc_agent_tell();
    }
}
