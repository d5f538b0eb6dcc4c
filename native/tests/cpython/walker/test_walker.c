/* The walk over a made-up interpreter, in the layout of every version: no interpreter, no luck. */
#include "tests/cpython/walker/made_up_walks.h"

TEST(test_frames_are_named_and_placed_innermost_first)
{
    open_source(version, 3);
    for (int again = 0; again < 3; again++) {
        CHECK(walk() == LC_WALK_OK && stack.count == 3 && !stack.truncated);
        CHECK(is_named(&stack.frames[0], "third") && stack.frames[0].line == 30);
        CHECK(is_named(&stack.frames[1], "second") && stack.frames[1].column == 1);
        CHECK(is_named(&stack.frames[2], "first") && stack.frames[2].end_column == 5);
        CHECK(!stack.came_and_went);
    }
    lc_cpython_source_close(&source);
}

TEST(test_a_warm_walk_is_two_readings_and_a_look)
{
    open_source(version, 50);
    CHECK(walk() == LC_WALK_OK && walk() == LC_WALK_OK);
    const uint64_t before = memory.reads;
    CHECK(walk() == LC_WALK_OK && stack.count == 50);
    /* Ranges, not system calls: the innermost frames three times, those outside of them, the thread. */
    CHECK(memory.reads - before <= 90);
    lc_cpython_source_close(&source);
}

TEST(test_a_deep_stack_is_cut_at_its_outer_end)
{
    open_source(version, 600);
    CHECK(walk() == LC_WALK_OK && stack.count == LC_STACK_FRAMES_MAX && stack.truncated);
    CHECK(is_named(&stack.frames[0], "fourth")); /* frame 599 */
    lc_cpython_source_close(&source);
}

TEST(test_no_frame_is_an_empty_stack)
{
    open_source(version, 0);
    CHECK(walk() == LC_WALK_EMPTY && stack.count == 0);
    made_up_top(&memory, 0);
    CHECK(walk() == LC_WALK_EMPTY && stack.count == 0);
    lc_cpython_source_close(&source);
}

TEST(test_a_frame_that_has_not_begun_is_left_out)
{
    open_source(version, 3);
    made_up_frame(&memory, 2, made_up_frame_address(1), 2, 0); /* before its first traceable unit */
    CHECK(walk() == LC_WALK_OK && stack.count == 2 && is_named(&stack.frames[0], "second"));
    lc_cpython_source_close(&source);
}

TEST(test_a_chain_that_bites_its_tail_ends)
{
    open_source(version, 3);
    made_up_frame(&memory, 0, made_up_frame_address(2), 0, 2);
    const lc_walk_result result = walk();
    CHECK(result != LC_WALK_OK || stack.truncated);
    lc_cpython_source_close(&source);
}

TEST(test_a_generator_that_was_just_unlinked_is_no_outermost_frame)
{
    open_source(version, 3);
    made_up_frame(&memory, 2, 0, 2, 2);
    made_up_put(&memory, made_up_frame_address(2) - MADE_UP_BASE + memory.layout->frame_owner,
                memory.layout->owner_generator, 1);
    CHECK(walk() == LC_WALK_MOVED && stack.count == 0);
    lc_cpython_source_close(&source);
}

TEST(test_memory_that_is_not_there_is_unreadable)
{
    open_source(version, 3);
    made_up_top(&memory, UINT64_C(0x7000000000));
    CHECK(walk() == LC_WALK_UNREADABLE);
    CHECK(source.source.walk(&source.source, 0, &stack) == LC_WALK_UNREADABLE);
    CHECK(source.source.walk(&source.source, made_up_at(MADE_UP_INTERP), &stack) != LC_WALK_OK);
    lc_cpython_source_close(&source);
}

TEST(test_another_code_object_at_the_same_address_is_another)
{
    open_source(version, 1);
    CHECK(walk() == LC_WALK_OK);
    const uint64_t serial = stack.frames[0].code->serial;
    made_up_code(&memory, 0, "other", 200); /* same pointers, same length: only the version or text differ */
    CHECK(walk() == LC_WALK_OK && is_named(&stack.frames[0], "other"));
    CHECK(stack.frames[0].code->serial != serial);
    lc_cpython_source_close(&source);
}

/* ---- where the deaths of code objects are counted ------------------------------------------------ */

static void not_counting(struct _object *code) { (void)code; }

/* No longer a code object: a reader sees that. */
static void spoil(uint32_t number)
{
    made_up_put(&memory, code_at(number) - MADE_UP_BASE + memory.layout->object_type, 0, 8);
}

static void replace(made_up_memory *m, uint32_t number)
{
    made_up_code(m, number, "other", 200);
    made_up_put(m, code_at(number) - MADE_UP_BASE + m->layout->code_first_line, 500, 4);
}

TEST(test_code_that_none_has_died_in_the_place_of_is_not_read_again)
{
    open_source_that_counts(version, 4);
    CHECK(walk() == LC_WALK_OK && walk() == LC_WALK_OK);
    lc_deaths_add(&deaths, code_at(100));
    for (uint32_t i = 0; i < 4; i++) {
        spoil(i);
    }
    CHECK(walk() == LC_WALK_OK && stack.count == 4);
    CHECK(is_named(&stack.frames[0], "fourth") && stack.frames[0].line == 40);
    CHECK(is_named(&stack.frames[3], "first") && stack.frames[3].line == 10);
    CHECK(source.counts.codes_trusted > 0);
    lc_cpython_source_close(&source);
}

TEST(test_a_walk_of_trusted_code_reads_frames_only)
{
    open_source_that_counts(version, 50);
    CHECK(walk() == LC_WALK_OK && walk() == LC_WALK_OK && walk() == LC_WALK_OK);
    const uint64_t before = memory.reads;
    CHECK(walk() == LC_WALK_OK && stack.count == 50);
    CHECK(memory.reads - before <= 70);
    lc_cpython_source_close(&source);
}

TEST(test_code_in_the_place_of_one_that_died_is_read)
{
    open_source_that_counts(version, 4);
    CHECK(walk() == LC_WALK_OK && walk() == LC_WALK_OK && walk() == LC_WALK_OK);
    replace(&memory, 1);
    lc_deaths_add(&deaths, code_at(1));
    CHECK(walk() == LC_WALK_OK && stack.count == 4);
    CHECK(is_named(&stack.frames[2], "other") && stack.frames[2].line == 500);
    CHECK(is_named(&stack.frames[3], "first"));
    CHECK(walk() == LC_WALK_OK && walk() == LC_WALK_OK && is_named(&stack.frames[2], "other"));
    lc_cpython_source_close(&source);
}

static uint64_t dies_before_read;

static void dies_and_is_replaced(made_up_memory *m)
{
    if (m->reads == dies_before_read) {
        lc_deaths_add(&deaths, code_at(1));
        replace(m, 1);
    }
}

/* Before any read of the walk; of a position that is not known yet, so that the line table is read, too. */
TEST(test_code_that_dies_in_the_middle_of_a_walk_is_never_mixed_with_the_next)
{
    for (uint64_t read = 1; read <= 40; read++) {
        open_source_that_counts(version, 3);
        CHECK(walk() == LC_WALK_OK && walk() == LC_WALK_OK && walk() == LC_WALK_OK);
        made_up_frame(&memory, 1, made_up_frame_address(0), 1, 5);
        memory.before_read = dies_and_is_replaced;
        dies_before_read = memory.reads + read;
        CHECK(walk() == LC_WALK_OK && stack.count == 3);
        const lc_frame *frame = &stack.frames[1];
        CHECK((is_named(frame, "second") && frame->line == 20) ||
              (is_named(frame, "other") && frame->line == 500));
        dies_before_read = memory.reads + 1; /* if it has not yet */
        CHECK(walk() == LC_WALK_OK && is_named(frame, "other") && frame->line == 500);
        lc_cpython_source_close(&source);
    }
}

static void dies_before_each_read(made_up_memory *m)
{
    (void)m;
    lc_deaths_add(&deaths, code_at(1));
}

/* Its words, and what they point to, can look the same in all readings: freed memory does, and the next
 * object's. */
TEST(test_code_that_dies_between_the_readings_is_not_given_out)
{
    open_source_that_counts(version, 4);
    memory.before_read = dies_before_each_read;
    CHECK(walk() == LC_WALK_OK && stack.inner_cut && stack.count == 1 && is_named(&stack.frames[0], "first"));
    memory.before_read = NULL;
    CHECK(walk() == LC_WALK_OK && !stack.inner_cut && stack.count == 4 &&
          is_named(&stack.frames[2], "second"));
    lc_cpython_source_close(&source);
}

TEST(test_readings_that_agree_once_are_not_enough_to_trust)
{
    open_source_that_counts(version, 1);
    CHECK(walk() == LC_WALK_OK);
    replace(&memory, 0);
    CHECK(walk() == LC_WALK_OK && is_named(&stack.frames[0], "other"));
    lc_cpython_source_close(&source);
}

TEST(test_nothing_is_trusted_after_another_was_in_the_slot)
{
    open_source_that_counts(version, 1);
    CHECK(walk() == LC_WALK_OK && walk() == LC_WALK_OK && walk() == LC_WALK_OK);
    slot = not_counting;
    CHECK(walk() == LC_WALK_OK);
    slot = counting;
    replace(&memory, 0); /* it died, uncounted */
    CHECK(walk() == LC_WALK_OK && is_named(&stack.frames[0], "other"));
    lc_cpython_source_close(&source);
}

TEST(test_code_of_another_interpreter_is_not_trusted)
{
    open_source_that_counts(version, 1);
    source.at.interp = made_up_at(MADE_UP_INTERP) + 8;
    CHECK(walk() == LC_WALK_OK && walk() == LC_WALK_OK && walk() == LC_WALK_OK);
    replace(&memory, 0); /* with the interpreter's memory, without its own death */
    CHECK(walk() == LC_WALK_OK && is_named(&stack.frames[0], "other"));
    lc_cpython_source_close(&source);
}

TEST(test_holder_of_the_gil)
{
    open_source(version, 1);
    lc_gil_view gil;
    source.source.gil(&source.source, made_up_at(MADE_UP_THREAD), &gil);
    CHECK(gil.state == LC_GIL_HELD_BY_SELF && gil.holder_tid == MADE_UP_TID);
    CHECK(gil.wait_address_low < gil.wait_address_high);
    lc_thread_ref threads[4];
    CHECK(source.source.threads(&source.source, made_up_at(MADE_UP_THREAD), threads, 4) == 1);
    CHECK(threads[0].tid == MADE_UP_TID);
    made_up_put(&memory, MADE_UP_THREAD + memory.layout->thread_next, made_up_at(MADE_UP_THREAD), 8);
    CHECK(source.source.threads(&source.source, made_up_at(MADE_UP_THREAD), threads, 4) == 1);
    lc_cpython_source_close(&source);
}

static void test_unknown_versions_have_no_layout(void)
{
    CHECK(lc_layout_find(0x030A0FF0) == NULL); /* 3.10 */
    CHECK(lc_layout_find(0x031000F0) == NULL); /* 3.16 */
    CHECK(lc_layout_find(0x030F00B1) == NULL); /* 3.15 beta */
    CHECK(lc_layout_find(0x030F00C1) != NULL && lc_layout_find(0x030B07F0) != NULL);
}

int main(void)
{
    run_tests_of_all_versions();
    test_unknown_versions_have_no_layout();
    return 0;
}
