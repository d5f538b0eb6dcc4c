/* A slot whose heap fills with stacks: the stall goes on in another one, and its end is seen as its begin
 * is. */

#include "tests/core/lane/still_stage.h"

static stage s;
static uint64_t next_serial = 100;

static void begin_work(void)
{
    lc_turn_begin(stage_context(&s), s.lane);
    lc_callback_begin(s.lane, 7, 0);
    age_callback(&s, 30);
}

static void end_work(void)
{
    lc_callback_end(stage_context(&s), s.lane);
    lc_turn_end(stage_context(&s), s.lane);
    look(&s);
}

static void take_samples(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        s.source.serial = next_serial++;
        s.watchdog.watches[0].next_sample_ns = 0;
        look(&s);
    }
}

/* The one that is in use. */
static lc_slot *open_slot(uint64_t *index)
{
    lc_slot *found = NULL;
    for (uint64_t i = 0; i < LC_SLOT_COUNT && slot(&s, i) != NULL; i++) {
        const uint64_t state = LC_LOAD(slot(&s, i)->state);
        if (state == LC_SLOT_OPEN || state == LC_SLOT_STALL) {
            CHECK(found == NULL);
            found = slot(&s, i);
            *index = i;
        }
    }
    CHECK(found != NULL);
    return found;
}

/* Of work that has just begun; the slot that it was in first. */
static const lc_slot *take_samples_until_it_moves(uint64_t *index)
{
    take_samples(1);
    const lc_slot *first = open_slot(index);
    do {
        take_samples(1);
    } while (open_slot(index) == first);
    return first;
}

static const void *at(const lc_slot *slot, uint32_t offset)
{
    CHECK(offset >= LC_SLOT_HEAP_OFFSET && offset < LC_LOAD(slot->heap_used));
    return (const char *)slot + offset;
}

static bool is_text(const lc_slot *slot, lc_ref ref, const char *text)
{
    return ref.bytes == strlen(text) && memcmp(at(slot, ref.offset), text, ref.bytes) == 0;
}

/* Whether the stack is the scripted source's, whole. */
static bool is_stack(const lc_slot *slot, uint32_t offset, uint32_t depth)
{
    const lc_stack_entry *head = at(slot, offset);
    const lc_frame_entry *frames = (const lc_frame_entry *)(head + 1);
    bool same = head->frames == depth;
    for (uint32_t i = 0; same && i < depth; i++) {
        const lc_code_entry *code = at(slot, frames[i].code);
        same = frames[i].line == 10 + i && is_text(slot, code->filename, "app.py") &&
               is_text(slot, code->qualname, "handler");
    }
    return same;
}

TEST(a_stall_whose_stacks_fill_its_slot_goes_on_in_another)
{
    uint64_t first_index, index;
    s.source.depth = LC_STACK_FRAMES_MAX / 4;
    begin_work();
    take_samples(1);
    const lc_slot *first = open_slot(&first_index);
    const uint64_t began = first->samples[0].at_ns, serial = LC_LOAD(first->serial);
    do {
        take_samples(1);
    } while (open_slot(&index) == first);
    CHECK(LC_LOAD(first->state) == LC_SLOT_FREE && index != first_index);
    take_samples(1000);
    const lc_slot *now = open_slot(&index);
    const uint64_t count = LC_LOAD(now->sample_count);
    CHECK(LC_LOAD(now->serial) == serial && now->samples[0].at_ns == began && count > 20);
    CHECK(counted(&s, LC_COUNTER_samples_dropped_full) == 0);
    CHECK(LC_LOAD(now->interval_ns) > s.watchdog.settings.sample_interval_ns);
    CHECK(is_text(now, now->callback, "handler") && is_text(now, now->task, "Task-1"));
    for (uint64_t i = 0; i < count; i++) {
        CHECK(i == 0 || now->samples[i].at_ns > now->samples[i - 1].at_ns);
        CHECK(is_stack(now, now->samples[i].stack, s.source.depth));
    }
    /* What it did last is there. */
    const lc_stack_entry *last = at(now, now->samples[count - 1].stack);
    CHECK(last->hash == (((next_serial - 1) * 1000u + s.source.depth) | 1u));
    end_work();
    CHECK(counted(&s, LC_COUNTER_stalls_recorded) == 0 && LC_LOAD(now->state) == LC_SLOT_FREE);
}

static void take_sample_of(uint64_t serial)
{
    s.source.serial = serial;
    s.watchdog.watches[0].next_sample_ns = 0;
    look(&s);
}

TEST(a_stack_that_was_moved_is_not_stored_again)
{
    uint64_t index;
    const uint64_t first = next_serial;
    begin_work();
    (void)take_samples_until_it_moves(&index);
    const lc_slot *now = open_slot(&index);
    const uint64_t used = LC_LOAD(now->heap_used), count = LC_LOAD(now->sample_count);
    take_sample_of(first); /* the first one is kept at each move */
    CHECK(open_slot(&index) == now && LC_LOAD(now->heap_used) == used);
    CHECK(now->samples[count].stack == now->samples[0].stack);
    s.source.depth--;
    take_sample_of(first); /* another stack, of a code that is known */
    s.source.depth++;
    CHECK(LC_LOAD(now->heap_used) == used + lc_stack_bytes(s.source.depth - 1));
    end_work();
}

/* So many stacks come again and again that they are among any half of the samples; then others come. */
TEST(where_it_was_not_worth_it_it_is_tried_again)
{
    enum { KEPT = 17 };
    uint64_t index;
    const uint64_t first = next_serial, depth = s.source.depth;
    next_serial += KEPT;
    s.source.depth = LC_STACK_FRAMES_MAX - 26;
    begin_work();
    for (uint64_t i = 0; i < 4u * KEPT; i++) {
        take_sample_of(first + i % KEPT);
    }
    CHECK(lc_slot_room(open_slot(&index)) < 14 * 1024);
    s.source.depth = LC_STACK_FRAMES_MAX / 2;
    take_samples(200);
    const lc_slot *now = open_slot(&index);
    const lc_stack_entry *last = at(now, now->samples[LC_LOAD(now->sample_count) - 1].stack);
    CHECK(last->hash > (((first + KEPT) * 1000u + s.source.depth) | 1u)); /* one of the last ones */
    CHECK(LC_LOAD(now->interval_ns) > s.watchdog.settings.sample_interval_ns);
    CHECK(counted(&s, LC_COUNTER_samples_dropped_full) < 40);
    end_work();
    for (uint64_t i = 0; i < LC_SLOT_COUNT; i++) { /* none was lost on the way */
        CHECK(slot(&s, i) == NULL || LC_LOAD(slot(&s, i)->state) == LC_SLOT_FREE);
        CHECK(s.watchdog.writers[i].slot == NULL);
    }
    s.source.depth = (uint32_t)depth;
    LC_STORE(s.flight.counters[LC_COUNTER_samples_dropped_full], 0);
}

TEST(a_slot_that_was_left_is_about_nothing)
{
    uint64_t index;
    begin_work();
    const lc_slot *before = take_samples_until_it_moves(&index);
    CHECK(LC_LOAD(before->turn_epoch) == 0 && LC_LOAD(before->epoch) == 0 && LC_LOAD(before->kind) == 0);
    end_work();
}

TEST(the_threads_of_a_hang_find_room)
{
    uint64_t index;
    s.source.depth = LC_STACK_FRAMES_MAX / 4;
    begin_work();
    do {
        take_samples(1);
    } while (lc_slot_room(open_slot(&index)) > 14 * 1024);
    s.source.depth = LC_STACK_FRAMES_MAX;
    age_callback(&s, 1100);
    take_samples(1);
    const lc_slot *now = open_slot(&index);
    CHECK(LC_LOAD(now->thread_count) == 2);
    for (uint64_t i = 0; i < 2; i++) {
        CHECK(is_stack(now, now->threads[i].stack, LC_STACK_FRAMES_MAX));
    }
    s.source.depth = LC_STACK_FRAMES_MAX / 4;
    take_samples(300); /* and are not lost as it goes on */
    now = open_slot(&index);
    CHECK(LC_LOAD(now->thread_count) == 2 && LC_LOAD(now->level) == LC_LEVEL_HANG);
    for (uint64_t i = 0; i < 2; i++) {
        CHECK(is_stack(now, now->threads[i].stack, LC_STACK_FRAMES_MAX));
    }
    end_work();
    CHECK(LC_LOAD(now->state) == LC_SLOT_ENDED && counted(&s, LC_COUNTER_samples_dropped_full) == 0);
    LC_STORE(slot(&s, index)->state, LC_SLOT_FREE);
}

TEST(where_no_other_slot_is_free_samples_are_dropped_and_counted)
{
    uint64_t index;
    begin_work();
    take_samples(1);
    const lc_slot *only = open_slot(&index);
    for (uint64_t i = 0; i < LC_SLOT_COUNT; i++) {
        if (i != index) {
            CHECK(lc_flight_claim(&s.flight, LC_SECTION_SLOTS, i) != NULL);
            LC_STORE(slot(&s, i)->serial, i + 100u); /* none was taken */
            LC_STORE(slot(&s, i)->state, LC_SLOT_ENDED);
        }
    }
    take_samples(200);
    CHECK(open_slot(&index) == only && counted(&s, LC_COUNTER_samples_dropped_full) > 0);
    CHECK(LC_LOAD(only->heap_used) <= LC_SLOT_BYTES);
    end_work();
    for (uint64_t i = 0; i < LC_SLOT_COUNT; i++) {
        LC_STORE(slot(&s, i)->state, LC_SLOT_FREE);
    }
}

static uint64_t hash_at(const lc_slot *slot, uint32_t offset)
{
    return ((const lc_stack_entry *)at(slot, offset))->hash;
}

/* All facts are the same but those that say where something is, and how many samples there are. */
static bool has_the_facts(const lc_slot *slot, const lc_slot *from)
{
    static const struct {
        size_t begin, end;
    } same[] = {
        {offsetof(lc_slot, lane), offsetof(lc_slot, sample_count)},
        {offsetof(lc_slot, samples_dropped_moved), offsetof(lc_slot, heap_used)},
        {offsetof(lc_slot, turn_callbacks), offsetof(lc_slot, callback)},
        {offsetof(lc_slot, work_read_ns), offsetof(lc_slot, thread_names)},
    };
    bool is = true;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        const size_t begin = same[i].begin;
        is = is && memcmp((const char *)slot + begin, (const char *)from + begin, same[i].end - begin) == 0;
    }
    return is;
}

/* Everything that a slot may hold. */
static void fill(lc_slot_writer *writer)
{
    static lc_code_facts code = {5, {"app.py", 6}, {"handler", 7}, 10, 0};
    static lc_stack stack;
    lc_slot *slot = writer->slot;
    stack.count = 3;
    for (uint32_t i = 0; i < stack.count; i++) {
        stack.frames[i] = (lc_frame){&code, 10 + i, 10 + i, 1, 5};
    }
    memset((char *)slot + offsetof(lc_slot, lane), 0x5a,
           offsetof(lc_slot, threads) - offsetof(lc_slot, lane));
    LC_STORE(slot->heap_used, LC_SLOT_HEAP_OFFSET);
    LC_STORE(slot->sample_count, 0);
    LC_STORE(slot->thread_count, 0);
    LC_STORE(slot->host_count, 0);
    LC_STORE(slot->thread_names, LC_NO_REF);
    slot->callback = slot->task = (lc_ref){0, 0};
    LC_STORE(slot->serial, 12);
    slot->lane = 3;
    writer->host_interval_ns = 99;
    memset(writer->contributors, 7, sizeof writer->contributors);
    writer->tally_from = 98;
    slot->scene = lc_slot_put_text(writer, (lc_text){"checkout", 8});
    for (uint32_t i = 0; i < 9; i++) {
        stack.hash = (100 + i) << 8;
        const uint32_t own = lc_slot_put_stack(writer, &stack);
        stack.hash = (150 + i) << 8;
        const lc_sample_entry sample = {
            .at_ns = i + 1,
            .stack = own,
            .holder_stack = i % 4 ? LC_NO_REF : lc_slot_put_stack(writer, &stack),
            .target = lc_slot_put_text(writer, (lc_text){"db:5432", 7}),
        };
        CHECK(lc_slot_put_sample(writer, &sample));
    }
    uint32_t before = LC_NO_REF;
    for (uint32_t tid = 20; tid < 23; tid++) {
        lc_slot_put_thread_name(writer, tid, tid == 20 ? (lc_text){"one", 3} : (lc_text){"another", 7});
        stack.hash = (200 + tid) << 8;
        const lc_wait_entry wait = {.tid = tid,
                                    .before = before,
                                    .holder_tid = tid + 1,
                                    .stack = lc_slot_put_stack(writer, &stack),
                                    .module = lc_slot_put_text(writer, (lc_text){"json", 4})};
        before = lc_slot_append(slot, &wait, sizeof wait);
    }
    LC_STORE(slot->circle, before);
    slot->contributors[0].name = lc_slot_put_text(writer, (lc_text){"parse", 5});
    slot->contributors[0].site_file = lc_slot_put_text(writer, (lc_text){"site.py", 7});
    LC_STORE(slot->contributor_count, 1);
    lc_slot_put_host(writer, &(lc_host_entry){.at_ns = 77});
}

TEST(all_that_a_slot_holds_is_moved)
{
    static lc_slot_writer from, to;
    static lc_moved moved;
    lc_slot_writer_begin(&from, lc_flight_claim(&s.flight, LC_SECTION_SLOTS, 0));
    fill(&from);
    to.slot = lc_flight_claim(&s.flight, LC_SECTION_SLOTS, 1);
    lc_slot_move(&to, &from, 2, &moved);
    const lc_slot *slot = to.slot;
    CHECK(has_the_facts(slot, from.slot) && to.host_interval_ns == 99);
    CHECK(to.contributors[3] == 7 && to.tally_from == 98);
    CHECK(LC_LOAD(slot->state) == LC_SLOT_FREE && LC_LOAD(slot->serial) == 12 && slot->lane == 3);
    CHECK(is_text(slot, slot->scene, "checkout") && slot->callback.bytes == 0);
    CHECK(LC_LOAD(slot->sample_count) == 5);
    for (uint32_t i = 0; i < 5; i++) {
        const lc_sample_entry *sample = &slot->samples[i];
        CHECK(sample->at_ns == 2 * i + 1 && is_text(slot, sample->target, "db:5432"));
        CHECK(is_stack(slot, sample->stack, 3) &&
              hash_at(slot, sample->stack) == ((UINT64_C(100) + 2 * i) << 8 | 1u));
        CHECK(i % 2 ? sample->holder_stack == LC_NO_REF
                    : hash_at(slot, sample->holder_stack) == ((UINT64_C(150) + 2 * i) << 8 | 1u));
    }
    uint32_t waits = 0, names = 0, above = LC_SLOT_BYTES;
    for (uint32_t offset = (uint32_t)LC_LOAD(slot->circle); offset != LC_NO_REF; waits++) {
        const lc_wait_entry *wait = at(slot, offset);
        CHECK(offset < above && wait->tid == 22 - waits && wait->holder_tid == wait->tid + 1);
        CHECK(is_stack(slot, wait->stack, 3) && is_text(slot, wait->module, "json"));
        above = offset;
        offset = wait->before;
    }
    for (uint32_t offset = (uint32_t)LC_LOAD(slot->thread_names); offset != LC_NO_REF; names++) {
        const lc_thread_name_entry *name = at(slot, offset);
        CHECK(is_text(slot, name->name, name->tid == 20 ? "one" : "another") && name->before < offset);
        offset = name->before;
    }
    CHECK(waits == 3 && names == 3 && !lc_slot_wants_thread_name(&to, 21) &&
          lc_slot_wants_thread_name(&to, 23));
    CHECK(is_text(slot, slot->contributors[0].name, "parse") &&
          is_text(slot, slot->contributors[0].site_file, "site.py"));
    CHECK(LC_LOAD(slot->host_count) == 1 && slot->hosts[0].at_ns == 77);
    CHECK(LC_LOAD(slot->heap_used) < LC_LOAD(from.slot->heap_used));
    CHECK(LC_LOAD(from.slot->sample_count) == 9 && is_stack(from.slot, from.slot->samples[1].stack, 3));
}

int main(void)
{
    stage_open_still(&s);
    const int result = run_tests();
    stage_close(&s);
    return result;
}
