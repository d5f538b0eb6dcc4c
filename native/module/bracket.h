/* Brackets around work on the calling thread: the lane's begin and end, made safe against an agent that
 * stops or starts while the work runs. GIL held. Used as a value on the C stack of the thread that runs
 * the work. */
#pragma once

#include "module/thread_lane.h"

#include "core/lane/tally.h"

typedef struct {
    lc_lane *lane; /* NULL: nothing was begun */
    uint64_t generation;
    uint64_t epoch; /* of the callback; it moves on where a loop inside the callback turned */
    bool own_turn;  /* no turn was open: the callback is a turn by itself */
} lc_bracket;

/* Inside a callback already (a loop that runs handles by hand): nothing is begun, the outer one counts. */
static inline __attribute__((always_inline)) lc_bracket lc_bracket_begin(lc_lane *lane, uint64_t work,
                                                                         uint64_t due)
{
    if (lane == NULL) {
        return (lc_bracket){NULL, 0, 0, false};
    }
    if (__builtin_expect(lc_lane_in_callback(lane), 0)) {
        if (LC_LOAD(lane->abandoned) != LC_LOAD(lane->epoch)) {
            return (lc_bracket){NULL, 0, 0, false};
        }
        lc_lane_drop_callback(lane);
    }
    const bool own_turn = !lc_lane_in_turn(lane);
    if (__builtin_expect(own_turn, 0)) {
        lc_thread_lane_begin_turn(lane);
    }
    lc_callback_begin(lane, work, due);
    return (lc_bracket){lane, lc_the_agent.generation, LC_LOAD(lane->epoch), own_turn};
}

static inline __attribute__((always_inline)) void lc_bracket_end_as(lc_bracket bracket,
                                                                    bool ends_what_is_inside)
{
    if (bracket.lane == NULL || !LC_AGENT_RUNS(bracket.generation)) {
        return;
    }
    const lc_lane_context *lanes = &lc_the_agent.watchdog.lanes;
    if (LC_LOAD(bracket.lane->epoch) == bracket.epoch ||
        (ends_what_is_inside && __builtin_expect(lc_lane_in_callback(bracket.lane), 0))) {
        (void)lc_callback_end(lanes, bracket.lane);
    }
    if (__builtin_expect(bracket.own_turn, 0)) {
        lc_thread_lane_end_turn(bracket.lane);
    }
}

/* A callback that was begun inside this one and is still open ends with it: the frame of a game that turns
 * by a loop's callbacks ends with its next flip, which may be long after the loop's next wait. */
static inline __attribute__((always_inline)) void lc_bracket_end(lc_bracket bracket)
{
    lc_bracket_end_as(bracket, true);
}

/* The same for those that are not kept on the C stack, whose end need not come before that of what was
 * begun around them: an open callback may be another's. */
static inline void lc_bracket_end_late(lc_bracket bracket) { lc_bracket_end_as(bracket, false); }

/* Whether the watchdog wants to know what this turn's callbacks are. */
static inline bool lc_bracket_is_tallied(lc_bracket bracket)
{
    return bracket.lane != NULL && lc_tally_is_on(bracket.lane);
}

/* lc_bracket_end of a callback that is tallied as one of this kind, scheduled at this place (lc_site_of). */
static inline __attribute__((cold)) void lc_bracket_end_tallied(lc_bracket bracket, lc_work_kind kind,
                                                                uint64_t site)
{
    lc_lane *lane = bracket.lane;
    if (LC_AGENT_RUNS(bracket.generation) && LC_LOAD(lane->epoch) == bracket.epoch) {
        const uint64_t begin = LC_LOAD(lane->begin);
        lc_tally_add(lane, kind, site, begin, lc_callback_end(&lc_the_agent.watchdog.lanes, lane));
    }
    lc_bracket_end(bracket);
}

/* A loop inside the running callback is about to wait or to turn: the callback is judged so far and
 * closed; what it does after the inner loop counts for the turn. (nest_asyncio, a debugger's prompt, a
 * modal dialog.) */
static inline void lc_bracket_interrupt(lc_lane *lane)
{
    const lc_lane_context *lanes = &lc_the_agent.watchdog.lanes;
    if (lc_lane_in_callback(lane)) {
        lc_callback_end(lanes, lane);
    }
    lc_turn_end(lanes, lane);
}
