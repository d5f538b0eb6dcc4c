#include "core/liveness/progress.h"

static void note_grant(lc_progress *p, const lc_progress_facts *facts)
{
    if (facts->grant_ns == 0) {
        return;
    }
    if (facts->grant_epoch != p->grant_epoch) {
        p->grants_before_ns += p->grant_ns;
        p->grant_epoch = facts->grant_epoch;
        p->grant_ns = 0;
    }
    if (facts->grant_ns > p->grant_ns) {
        p->grant_ns = facts->grant_ns;
    }
}

uint64_t lc_progress_note(lc_progress *p, const lc_progress_facts *facts, uint64_t now_ns)
{
    const bool is_same = facts->generation == p->generation && facts->turn == p->turn;
    if (!is_same || !(facts->turn & 1u)) {
        *p = (lc_progress){.generation = facts->generation, .turn = facts->turn, .looked_ns = now_ns};
    }
    if (!(facts->turn & 1u)) {
        return 0;
    }
    const uint64_t step = now_ns > p->looked_ns ? now_ns - p->looked_ns : 0u;
    p->held_ns += step < LC_PROGRESS_STEP_NS ? step : LC_PROGRESS_STEP_NS;
    p->looked_ns = now_ns;
    note_grant(p, facts);
    const uint64_t granted = p->grants_before_ns + p->grant_ns;
    return p->held_ns > granted ? p->held_ns - granted : 0u;
}
