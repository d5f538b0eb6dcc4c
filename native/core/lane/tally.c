#include "core/lane/tally.h"

#include <string.h>

static uint32_t place_of(lc_work_kind kind, uint64_t site)
{
    return (uint32_t)(((kind.key ^ site) * UINT64_C(0x9E3779B97F4A7C15)) >> 32) % LC_TALLY_COUNT;
}

static void begin_again(lc_lane *lane, uint64_t begin)
{
    LC_STORE(lane->tally_turn, 0);
    atomic_thread_fence(memory_order_release);
    for (uint32_t i = 0; i < LC_TALLY_COUNT; i++) {
        LC_STORE(lane->tally_entries[i].key, 0);
    }
    LC_STORE(lane->tally_dropped, 0);
    LC_STORE(lane->tally_from, begin);
    LC_RELEASE(lane->tally_turn, LC_LOAD(lane->turn_epoch));
}

/* The entry of kind and place, made if need be; NULL: the table is full of others. */
static lc_tally_entry *entry_of(lc_lane *lane, lc_work_kind kind, uint64_t site)
{
    uint32_t place = place_of(kind, site);
    for (uint32_t i = 0; i < LC_TALLY_COUNT; i++, place = (place + 1u) % LC_TALLY_COUNT) {
        lc_tally_entry *entry = &lane->tally_entries[place];
        const uint64_t key = LC_LOAD(entry->key);
        if (key == kind.key && LC_LOAD(entry->owner) == kind.owner && LC_LOAD(entry->site) == site) {
            return entry;
        }
        if (key == 0) {
            LC_STORE(entry->owner, kind.owner);
            LC_STORE(entry->site, site);
            LC_STORE(entry->count, 0);
            LC_STORE(entry->ticks, 0);
            LC_STORE(entry->longest, 0);
            LC_RELEASE(entry->key, kind.key);
            return entry;
        }
    }
    return NULL;
}

void lc_tally_add(lc_lane *lane, lc_work_kind kind, uint64_t site, uint64_t begin, uint64_t ticks)
{
    if (begin < LC_LOAD(lane->turn_rest)) {
        return; /* it was judged alone */
    }
    if (LC_LOAD(lane->tally_turn) != LC_LOAD(lane->turn_epoch)) {
        begin_again(lane, begin);
    }
    lc_tally_entry *entry = kind.key == 0 ? NULL : entry_of(lane, kind, site);
    if (entry == NULL) {
        LC_ADD(lane->tally_dropped, 1u);
        return;
    }
    LC_ADD(entry->count, 1u);
    LC_ADD(entry->ticks, ticks);
    if (ticks > LC_LOAD(entry->longest)) {
        LC_STORE(entry->longest, ticks);
    }
}

void lc_tally_ask(lc_lane *lane, uint64_t turn_epoch)
{
    if (LC_LOAD(lane->tally) != turn_epoch) {
        LC_STORE(lane->tally, turn_epoch);
    }
}

/* The contributor of a lane's entry, made with its name if need be. */
static lc_contributor_entry *contributor_of(lc_slot_writer *writer, uint32_t place,
                                            const lc_tally_entry *entry, lc_frame_source *source)
{
    lc_slot *slot = writer->slot;
    const uint64_t count = LC_LOAD(slot->contributor_count);
    if (writer->contributors[place] != 0) {
        return &slot->contributors[writer->contributors[place] - 1u];
    }
    if (count >= LC_TALLY_COUNT) {
        return NULL;
    }
    const lc_work_kind kind = {LC_LOAD(entry->key), LC_LOAD(entry->owner)};
    lc_contributor_entry *contributor = &slot->contributors[count];
    const uint64_t site = LC_LOAD(entry->site);
    contributor->name = lc_slot_put_text(writer, source->kind_name(source, kind));
    contributor->site_file =
        site == 0 ? (lc_ref){0, 0} : lc_slot_put_text(writer, source->text(source, lc_site_file(site)));
    LC_STORE(contributor->site_line, lc_site_line(site));
    LC_STORE(contributor->count, 0);
    LC_STORE(contributor->total_ns, 0);
    LC_STORE(contributor->longest_ns, 0);
    LC_RELEASE(slot->contributor_count, count + 1u);
    writer->contributors[place] = (uint8_t)(count + 1u);
    return contributor;
}

static void forget(lc_slot_writer *writer)
{
    LC_STORE(writer->slot->contributor_count, 0);
    LC_STORE(writer->slot->contributors_dropped, 0);
    LC_STORE(writer->slot->contributors_from_ns, 0);
    memset(writer->contributors, 0, sizeof writer->contributors);
    writer->tally_from = 0;
}

void lc_tally_copy(lc_slot_writer *writer, const lc_lane *lane, const lc_flight *flight, lc_instant now,
                   lc_frame_source *source)
{
    lc_slot *slot = writer->slot;
    const uint64_t turn = LC_ACQUIRE(lane->tally_turn), from = LC_LOAD(lane->tally_from);
    if (turn == 0 || turn != LC_LOAD(slot->turn_epoch)) {
        return;
    }
    if (writer->tally_from != from) { /* it began again in this turn */
        forget(writer);
        writer->tally_from = from;
    }
    const uint64_t rate = LC_LOAD(flight->header->tick_ns_q32);
    for (uint32_t i = 0; i < LC_TALLY_COUNT; i++) {
        const lc_tally_entry *entry = &lane->tally_entries[i];
        if (LC_ACQUIRE(entry->key) == 0) {
            continue;
        }
        lc_contributor_entry *contributor = contributor_of(writer, i, entry, source);
        if (contributor != NULL) {
            LC_STORE(contributor->count, LC_LOAD(entry->count));
            LC_STORE(contributor->total_ns, lc_ticks_to_ns(LC_LOAD(entry->ticks), rate));
            LC_STORE(contributor->longest_ns, lc_ticks_to_ns(LC_LOAD(entry->longest), rate));
        }
    }
    LC_STORE(slot->contributors_dropped, LC_LOAD(lane->tally_dropped));
    LC_STORE(slot->contributors_from_ns, lc_flight_ns_near(flight, now, from));
    atomic_thread_fence(memory_order_acquire);
    if (LC_LOAD(lane->tally_turn) != turn || LC_LOAD(lane->tally_from) != from) { /* meanwhile */
        forget(writer);
    }
}
