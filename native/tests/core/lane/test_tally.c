/* The tally of a turn's callbacks, from the thread's side and the watchdog's. */
#include "tests/core/lane/still_stage.h"
#include "core/lane/tally.h"

static stage s;

enum { PARSE = 1, RENDER = 2, STORE = 3 };

static void run_callback(uint64_t key, uint64_t ticks)
{
    lc_callback_begin(s.lane, 8, 0);
    const uint64_t begin = LC_LOAD(s.lane->begin);
    if (lc_tally_is_on(s.lane)) {
        lc_tally_add(s.lane, (lc_work_kind){key, 0}, 0, begin, ticks);
    }
    lc_callback_end(stage_context(&s), s.lane);
}

static const lc_contributor_entry *contributor(const lc_slot *it, const char *name)
{
    for (uint64_t i = 0; i < LC_LOAD(it->contributor_count); i++) {
        const lc_ref ref = it->contributors[i].name;
        if (ref.bytes == strlen(name) && memcmp((const char *)it + ref.offset, name, ref.bytes) == 0) {
            return &it->contributors[i];
        }
    }
    return NULL;
}

static void end_and_free(void)
{
    lc_turn_end(stage_context(&s), s.lane);
    look(&s);
    if (slot(&s, 0) != NULL) {
        LC_STORE(slot(&s, 0)->state, LC_SLOT_FREE);
    }
}

TEST(nothing_is_tallied_before_the_watchdog_asks)
{
    lc_turn_begin(stage_context(&s), s.lane);
    run_callback(PARSE, 10);
    CHECK(LC_LOAD(s.lane->tally_turn) == 0);
    end_and_free();
}

TEST(a_burst_is_told_by_name_from_the_first_look_on)
{
    const uint64_t rate = LC_LOAD(s.flight.header->tick_ns_q32);
    lc_turn_begin(stage_context(&s), s.lane);
    run_callback(PARSE, 10); /* not seen: it was not asked for */
    age_turn(&s, 30);
    look(&s);
    CHECK(LC_LOAD(slot(&s, 0)->contributors_from_ns) == 0);
    const uint64_t from_ns = lc_now_ns();
    for (int i = 0; i < 300; i++) {
        run_callback(PARSE, lc_ns_to_ticks(2000, rate));
        run_callback(RENDER, lc_ns_to_ticks(i == 7 ? 9000 : 1000, rate));
    }
    look(&s);
    /* while it lasts, should the process die */
    CHECK(LC_LOAD(contributor(slot(&s, 0), "parse")->count) == 300);
    run_callback(STORE, lc_ns_to_ticks(500, rate));
    age_turn(&s, 100);
    lc_turn_end(stage_context(&s), s.lane);
    look(&s);

    const lc_slot *it = slot(&s, 0);
    CHECK(LC_LOAD(it->state) == LC_SLOT_ENDED && LC_LOAD(it->kind) == LC_ENDED_TURN);
    CHECK(LC_LOAD(it->contributor_count) == 3 && LC_LOAD(it->contributors_dropped) == 0);
    CHECK(LC_LOAD(it->contributors_from_ns) >= from_ns && LC_LOAD(it->contributors_from_ns) <= lc_now_ns());
    const lc_contributor_entry *render = contributor(it, "render");
    CHECK(LC_LOAD(render->count) == 300);
    const uint64_t total = LC_LOAD(render->total_ns);
    /* in each, at the most: ticks are rounded down, and may be some ns long */
    const uint64_t lost = 1u + (rate >> 32);
    CHECK(total > 299u * (1000u - lost) + 9000u - lost && total < 299u * 1001u + 9001u);
    CHECK(LC_LOAD(render->longest_ns) >= 9000u - lost && LC_LOAD(render->longest_ns) < 9001u);
    CHECK(LC_LOAD(contributor(it, "store")->count) == 1);
    LC_STORE(slot(&s, 0)->state, LC_SLOT_FREE);
}

TEST(the_next_turn_starts_with_an_empty_table)
{
    lc_turn_begin(stage_context(&s), s.lane);
    age_turn(&s, 30);
    look(&s);
    run_callback(STORE, 1);
    age_turn(&s, 100);
    lc_turn_end(stage_context(&s), s.lane);
    look(&s);
    const lc_slot *it = slot(&s, 0);
    CHECK(LC_LOAD(it->contributor_count) == 1 && LC_LOAD(contributor(it, "store")->count) == 1);
    LC_STORE(slot(&s, 0)->state, LC_SLOT_FREE);
}

TEST(kinds_beyond_the_table_are_counted)
{
    lc_turn_begin(stage_context(&s), s.lane);
    age_turn(&s, 30);
    look(&s);
    for (uint64_t key = 1; key <= LC_TALLY_COUNT + 5u; key++) {
        run_callback(key * 8u, 1);
        run_callback(key * 8u, 1);
    }
    run_callback(0, 1); /* of no kind */
    look(&s);
    const lc_slot *it = slot(&s, 0);
    CHECK(LC_LOAD(it->contributor_count) == LC_TALLY_COUNT);
    CHECK(LC_LOAD(it->contributors_dropped) == 2u * 5u + 1u);
    uint64_t counted_in_table = 0;
    for (uint64_t i = 0; i < LC_TALLY_COUNT; i++) {
        counted_in_table += LC_LOAD(it->contributors[i].count);
    }
    CHECK(counted_in_table == 2u * LC_TALLY_COUNT);
    end_and_free();
}

TEST(owners_tell_kinds_of_one_name_apart)
{
    lc_turn_begin(stage_context(&s), s.lane);
    lc_tally_ask(s.lane, LC_LOAD(s.lane->turn_epoch));
    lc_tally_add(s.lane, (lc_work_kind){PARSE, 100}, 0, 1, 5);
    lc_tally_add(s.lane, (lc_work_kind){PARSE, 200}, 0, 2, 6);
    lc_tally_add(s.lane, (lc_work_kind){PARSE, 100}, 0, 3, 7);
    unsigned entries = 0;
    for (uint32_t i = 0; i < LC_TALLY_COUNT; i++) {
        const lc_tally_entry *entry = &s.lane->tally_entries[i];
        if (LC_LOAD(entry->key) != 0) {
            entries++;
            CHECK(LC_LOAD(entry->owner) == 100 ? LC_LOAD(entry->ticks) == 12 && LC_LOAD(entry->longest) == 7
                                               : LC_LOAD(entry->ticks) == 6);
        }
    }
    CHECK(entries == 2 && LC_LOAD(s.lane->tally_from) == 1);
    end_and_free();
}

TEST(callbacks_are_told_apart_by_who_scheduled_them)
{
    const uint64_t here = lc_site_of(0x1000, 12), there = lc_site_of(0x1000, 30);
    lc_turn_begin(stage_context(&s), s.lane);
    lc_tally_ask(s.lane, LC_LOAD(s.lane->turn_epoch));
    age_turn(&s, 30);
    look(&s);
    lc_tally_add(s.lane, (lc_work_kind){PARSE, 0}, here, 1, 5);
    lc_tally_add(s.lane, (lc_work_kind){PARSE, 0}, there, 2, 6);
    lc_tally_add(s.lane, (lc_work_kind){PARSE, 0}, here, 3, 7);
    lc_tally_add(s.lane, (lc_work_kind){RENDER, 0}, 0, 3, 7);
    look(&s);
    const lc_slot *it = slot(&s, 0);
    unsigned counts[31] = {0};
    CHECK(LC_LOAD(it->contributor_count) == 3);
    for (uint64_t i = 0; i < 3; i++) {
        const lc_contributor_entry *entry = &it->contributors[i];
        const uint64_t line = LC_LOAD(entry->site_line);
        CHECK(line == 0 || line == 12 || line == 30);
        CHECK((entry->site_file.bytes == 8) == (line != 0)); /* "checkout", the scripted source's only text */
        counts[line] += (unsigned)LC_LOAD(entry->count);
    }
    CHECK(counts[12] == 2 && counts[30] == 1 && counts[0] == 1);
    end_and_free();
}

TEST(a_place_that_does_not_fit_its_word_is_not_known)
{
    CHECK(lc_site_of(0, 7) == 0 && lc_site_of(UINT64_C(1) << 48, 7) == 0 && lc_site_of(0x1000, 65536) == 0);
    const uint64_t site = lc_site_of((UINT64_C(1) << 48) - 8, 65535);
    CHECK(lc_site_file(site) == (UINT64_C(1) << 48) - 8 && lc_site_line(site) == 65535);
}

TEST(a_wish_for_a_turn_that_is_over_does_nothing)
{
    lc_turn_begin(stage_context(&s), s.lane);
    const uint64_t old = LC_LOAD(s.lane->turn_epoch);
    lc_turn_end(stage_context(&s), s.lane);
    lc_turn_begin(stage_context(&s), s.lane);
    lc_tally_ask(s.lane, old);
    CHECK(!lc_tally_is_on(s.lane));
    end_and_free();
}

TEST(a_turn_that_is_yet_to_come_is_tallied)
{
    lc_turn_begin(stage_context(&s), s.lane);
    lc_tally_ask(s.lane, LC_LOAD(s.lane->turn_epoch) + 2u);
    CHECK(!lc_tally_is_on(s.lane));
    end_and_free();
    lc_turn_begin(stage_context(&s), s.lane);
    CHECK(lc_tally_is_on(s.lane));
    run_callback(PARSE, 10);
    end_and_free();
}

int main(void)
{
    stage_open_still(&s);
    run_tests();
    stage_close(&s);
    return 0;
}
