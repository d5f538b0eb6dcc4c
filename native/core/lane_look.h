/* When something came that the kernel keeps no time of, such as the bytes on a Unix socket: what the loop's own looks tell.
 *
 * A loop looks at all its sockets in each wait. What it finds in a wait that lasted came at its end, and woke it. What it
 * finds in one that was over at once lay there before: it came since the look before, while the loop was in its turn.
 */
#ifndef LOOPCANARY_LANE_LOOK_H
#define LOOPCANARY_LANE_LOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "lane.h"

/* A wait that lasts longer has found nothing when it began. */
#define LC_LOOK_REST_NS UINT64_C(1000000)

typedef struct {
    uint64_t after_ns; /* what the loop finds in its present turn came after that, */
    uint64_t until_ns; /* and until then; CLOCK_MONOTONIC */
    uint64_t rested;   /* ticks; grows by the length of each wait, and by nothing else */
    uint64_t rate;     /* lc_header.tick_ns_q32 */
} lc_look;

/* Whether the loop has not rested since a look whose `rested` is given. */
static inline bool lc_look_goes_on(uint64_t rested, const lc_look *now)
{
    return lc_ticks_to_ns(now->rested - rested, now->rate) <= LC_LOOK_REST_NS;
}

/* The look with which the lane's present turn began; false: it is in none. `before`: the turn before; `now` in ticks and
 * nanoseconds is one moment; `rate`: lc_header.tick_ns_q32. The lane's thread. */
bool lc_lane_look(const lc_lane *lane, lc_turn_before before, lc_instant now, uint64_t rate, lc_look *out);

#endif
