#include "spin_pace.h"

#include "tally.h"

/* Of the lane's time: less is no core lost, even where the looks for events between its turns take as long as these. */
enum { BUSY_PARTS = 4 };
/* A turn so far ahead (of the turns of one reckoning) has not begun yet when the lane's thread sees that it is asked for. */
enum { AHEAD_PARTS = 64 };

void lc_spin_pace_step(lc_spin_pace *pace, lc_lane *lane, uint64_t turn, uint64_t now_ns, uint64_t tick_ns_q32)
{
    if (LC_ACQUIRE(pace->wanted) != LC_LOAD(lane->generation) || now_ns < pace->at_ns + LC_SPIN_LOOK_NS) {
        return;
    }
    const uint64_t busy_ticks = LC_LOAD(lane->busy_ticks);
    const uint64_t took_ns = now_ns - pace->at_ns;
    const uint64_t turns = turn > pace->turn ? (turn - pace->turn) / 2u : 0u;
    const uint64_t busy = busy_ticks > pace->busy_ticks ? busy_ticks - pace->busy_ticks : 0u;
    pace->at_ns = now_ns;
    pace->turn = turn;
    pace->busy_ticks = busy_ticks;
    if (turns > 0 && lc_ticks_to_ns(busy, tick_ns_q32) >= took_ns / BUSY_PARTS) {
        lc_tally_ask(lane, (turn | 1u) + 2u * (1u + turns / AHEAD_PARTS));
    }
}
