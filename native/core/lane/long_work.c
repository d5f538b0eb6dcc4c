#include "core/lane/long_work.h"

#include <string.h>

void lc_long_work_open(lc_lane *lane, uint64_t rate)
{
    const uint64_t limit = lc_least(lc_ns_to_ticks(LC_LONG_LEAST_NS, rate), LC_LOAD(lane->threshold));
    LC_STORE(lane->long_limit_least, limit);
    LC_STORE(lane->long_limit, limit);
    LC_STORE(lane->long_round, 0);
    LC_STORE(lane->long_turn, 0);
    LC_STORE(lane->long_turn_ticks, 0);
}

static void adapt(const lc_lane_context *context, lc_lane *lane, uint64_t now)
{
    const uint64_t round = lc_ns_to_ticks(LC_LONG_ROUND_NS, LC_LOAD(context->header->tick_ns_q32));
    const uint64_t began = LC_LOAD(lane->long_round);
    const uint64_t limit = LC_LOAD(lane->long_limit);
    if (began != 0 && now > began && now - began < round && limit <= LC_LOAD(lane->threshold) / 4u) {
        LC_STORE(lane->long_limit, limit * 2u);
    }
    LC_STORE(lane->long_round, now);
}

void lc_long_work_relax(lc_lane *lane, uint64_t now, uint64_t rate)
{
    const uint64_t limit = LC_LOAD(lane->long_limit_least);
    const uint64_t count = LC_LOAD(lane->long_count);
    if (LC_LOAD(lane->long_limit) == limit || count == 0) {
        return;
    }
    const uint64_t last = LC_LOAD(lc_long_work_entry(lane, count)->end);
    if (now > last && now - last > lc_ns_to_ticks(LC_LONG_ROUND_NS, rate)) {
        LC_STORE(lane->long_limit, limit);
        LC_STORE(lane->long_round, 0);
    }
}

/* The next entry; readers skip it until it has its sequence. */
static lc_long_work *begin_entry(const lc_lane_context *context, lc_lane *lane, uint64_t sequence,
                                 lc_ended_kind kind, uint64_t begin, uint64_t end)
{
    const uint64_t turn_begin = LC_LOAD(lane->turn_begin);
    lc_long_work *entry = lc_long_work_entry(lane, sequence);
    LC_STORE(entry->sequence, 0);
    atomic_thread_fence(memory_order_release);
    LC_STORE(entry->kind, kind);
    LC_STORE(entry->epoch, kind == LC_ENDED_CALLBACK ? LC_LOAD(lane->epoch) : LC_LOAD(lane->turn_epoch));
    LC_STORE(entry->begin, begin);
    LC_STORE(entry->end, end);
    LC_STORE(entry->turns_before, LC_LOAD(lane->turns));
    LC_STORE(entry->busy_ticks_before,
             LC_LOAD(lane->busy_ticks) + (begin > turn_begin ? begin - turn_begin : 0u));
    LC_STORE(entry->limit, LC_LOAD(lane->long_limit));
    memset(entry->name, 0, sizeof entry->name);
    memset(entry->task, 0, sizeof entry->task);
    if ((sequence - 1u) % LC_LONG_WORK_COUNT == 0) {
        adapt(context, lane, end);
    }
    return entry;
}

static void end_entry(lc_lane *lane, lc_long_work *entry, uint64_t sequence)
{
    LC_RELEASE(entry->sequence, sequence);
    LC_RELEASE(lane->long_count, sequence);
}

static void note_in_turn(lc_lane *lane, uint64_t ticks)
{
    const uint64_t turn = LC_LOAD(lane->turn_epoch);
    const uint64_t sum = LC_LOAD(lane->long_turn) == turn ? LC_LOAD(lane->long_turn_ticks) : 0u;
    LC_STORE(lane->long_turn, turn);
    LC_STORE(lane->long_turn_ticks, sum + ticks);
}

void lc_long_work_add_callback(const lc_lane_context *context, lc_lane *lane, uint64_t begin, uint64_t end)
{
    const uint64_t sequence = LC_LOAD(lane->long_count) + 1u;
    const uint64_t ticks = end - begin;
    lc_long_work *entry = begin_entry(context, lane, sequence, LC_ENDED_CALLBACK, begin, end);
    LC_STORE(entry->callbacks, 1);
    LC_STORE(entry->longest_ticks, ticks);
    LC_STORE(entry->callbacks_before, LC_LOAD(lane->callbacks) + LC_LOAD(lane->turn_callbacks) - 1u);
    lc_frame_source *source = context->source;
    if (source != NULL && source->name_ended != NULL) {
        source->name_ended(source, LC_LOAD(lane->work), entry);
    }
    end_entry(lane, entry, sequence);
    note_in_turn(lane, ticks);
}

void lc_long_work_add_turn(const lc_lane_context *context, lc_lane *lane, const lc_callbacks *of,
                           uint64_t begin, uint64_t end, bool always)
{
    const uint64_t ticks = end - begin;
    const uint64_t known =
        LC_LOAD(lane->long_turn) == LC_LOAD(lane->turn_epoch) ? LC_LOAD(lane->long_turn_ticks) : 0u;
    if (!always && ticks - lc_least(known, ticks) <= LC_LOAD(lane->long_limit)) {
        return;
    }
    const uint64_t sequence = LC_LOAD(lane->long_count) + 1u;
    lc_long_work *entry = begin_entry(context, lane, sequence, LC_ENDED_TURN, begin, end);
    LC_STORE(entry->callbacks, of->count);
    LC_STORE(entry->longest_ticks, of->longest);
    LC_STORE(entry->callbacks_before, LC_LOAD(lane->callbacks));
    end_entry(lane, entry, sequence);
}
