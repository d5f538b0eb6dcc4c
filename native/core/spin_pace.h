/* When to look at what a loop runs that may never wait.
 *
 * Which work comes again and again is told by looking at all callbacks of one turn, now and then. The watchdog says
 * which turn, by asking for its tally (tally.h), so that turns that nobody looks at cost nothing. It asks only lanes
 * whose threads want to look (native/module/spin_look.h), and only while they are at work for most of the time.
 */
#ifndef LOOPCANARY_SPIN_PACE_H
#define LOOPCANARY_SPIN_PACE_H

#include "flight.h"
#include "lane.h"

#define LC_SPIN_LOOK_NS UINT64_C(100000000)

typedef struct {
    lc_word wanted;      /* the generation of the lane whose thread wants to look; 0: none has */
    uint64_t at_ns;      /* the last reckoning: when, and what the lane's words were then */
    uint64_t turn;
    uint64_t busy_ticks;
} lc_spin_pace;

/* The thread that owns the lane looks at the turns that are asked for. That thread; idempotent. */
static inline void lc_spin_pace_want(lc_spin_pace *pace, const lc_lane *lane)
{
    LC_RELEASE(pace->wanted, LC_LOAD(lane->generation));
}

/* At each look of the watchdog: asks for a turn that is about to come, if it is time and the lane is busy enough.
 * `turn`: the lane's turn_epoch, none of whose turns is being tallied. Watchdog. */
void lc_spin_pace_step(lc_spin_pace *pace, lc_lane *lane, uint64_t turn, uint64_t now_ns, uint64_t tick_ns_q32);

#endif
