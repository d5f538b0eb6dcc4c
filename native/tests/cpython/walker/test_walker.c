/* The walk over a made-up interpreter, in the layout of every version: no interpreter, no luck. */
#include "cpython/layouts/opcodes.h"
#include "fuzz/made_up_memory.h"
#include "tests/check.h"

static const uint64_t versions[] = {0x030B07F0, 0x030C01F0, 0x030D00F0, 0x030E0AF0, 0x030F02F0};

static made_up_memory memory;
static lc_cpython_source source;
static lc_stack stack;

static void open_source(uint64_t version, uint32_t depth)
{
    const lc_interpreter_addresses at = made_up_addresses();
    made_up_interpreter(&memory, version, depth);
    CHECK(lc_cpython_source_init(&source, &memory.reader, memory.layout, &at));
}

static lc_walk_result walk(void)
{
    return source.source.walk(&source.source, made_up_at(MADE_UP_THREAD), &stack);
}

static int is_named(const lc_frame *frame, const char *qualname)
{
    return frame->code->qualname.length == strlen(qualname) &&
           memcmp(frame->code->qualname.bytes, qualname, strlen(qualname)) == 0;
}

static uint64_t version; /* PY_VERSION_HEX of the layout; all tests run for each */

TEST(test_frames_are_named_and_placed_innermost_first)
{
    open_source(version, 3);
    for (int again = 0; again < 3; again++) {
        CHECK(walk() == LC_WALK_OK && stack.count == 3 && !stack.truncated);
        CHECK(is_named(&stack.frames[0], "third") && stack.frames[0].line == 30);
        CHECK(is_named(&stack.frames[1], "second") && stack.frames[1].column == 1);
        CHECK(is_named(&stack.frames[2], "first") && stack.frames[2].end_column == 5);
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

static lc_code_deaths deaths;
static lc_code_destructor slot;

static void counting(struct _object *code)
{
    (void)code;
}

static void not_counting(struct _object *code)
{
    (void)code;
}

static uint64_t code_at(uint32_t number)
{
    return made_up_at(MADE_UP_CODES + (uint64_t)number * MADE_UP_CODE_STRIDE);
}

static void open_source_that_counts(uint64_t version, uint32_t depth)
{
    open_source(version, depth);
    memset(&deaths, 0, sizeof deaths);
    deaths.slot = &slot;
    deaths.counting = counting;
    slot = counting;
    source.deaths = &deaths;
    source.at.interp = made_up_at(MADE_UP_INTERP);
}

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
        CHECK((is_named(frame, "second") && frame->line == 20) || (is_named(frame, "other") && frame->line == 500));
        dies_before_read = memory.reads + 1; /* if it has not yet */
        CHECK(walk() == LC_WALK_OK && is_named(frame, "other") && frame->line == 500);
        lc_cpython_source_close(&source);
    }
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

/* ---- frames that come and go: the innermost one is another one in each reading -------------------- */

enum { RUNS = -1, CALLS = 3, CALLER = 1, CALLEE = 2, ENTRY = 8, CALLED_FUNCTIONS = 11 };

/* What the callers' words say, where the version tells it. */
static struct {
    int32_t caller_stack; /* depth of its value stack */
    int32_t callee_stack;
    bool by_way_of_c;     /* the caller calls a C function, which calls the callee */
    bool caller_goes_on;  /* it is changed by each read */
} scene;

enum { OPCODE_RUNS = 10, OPCODE_CALLS = 11 };
static const uint8_t opcodes[256] = {[OPCODE_RUNS] = LC_OPCODE_RUNS, [OPCODE_CALLS] = LC_OPCODE_CALLS};

static bool has_stacktop(void)
{
    return lc_layout_find(version)->frame_stack_bytes == 4;
}

/* From 3.14 on the instruction tells it, and a frame that has ended has no code. */
static void put_stack(made_up_memory *m, uint32_t frame, int32_t depth)
{
    const lc_layout *l = m->layout;
    uint8_t *words = m->bytes + made_up_frame_address(frame) - MADE_UP_BASE;
    uint64_t instr;
    memcpy(&instr, words + l->frame_instr, sizeof instr);
    if (has_stacktop()) {
        memcpy(words + l->frame_stack, &depth, 4);
    } else if (frame == CALLEE && depth == CALLS) {
        memset(words + l->frame_code, 0, 8);
    } else {
        made_up_put(m, instr - MADE_UP_BASE, depth == RUNS ? OPCODE_RUNS : OPCODE_CALLS, 1);
    }
}

static void one_function_after_another(made_up_memory *m)
{
    const lc_layout *l = m->layout;
    const uint64_t caller = made_up_frame_address(CALLER);
    const uint64_t entry = made_up_frame_address(ENTRY);
    const bool shim = scene.by_way_of_c && l->frame_entry == LC_ABSENT;
    made_up_frame(m, CALLER, made_up_frame_address(0), 1, 2);
    made_up_put(m, caller - MADE_UP_BASE + 16, scene.caller_goes_on ? m->reads : 0, 8); /* a word that nobody asks for */
    put_stack(m, CALLER, scene.caller_stack);
    if (shim) {
        made_up_put(m, entry - MADE_UP_BASE + l->frame_previous, caller, 8);
        made_up_put(m, entry - MADE_UP_BASE + l->frame_owner, l->owner_shim, 1);
    }
    made_up_frame(m, CALLEE, shim ? entry : caller, 4 + (uint32_t)((m->reads + source.counts.walks) / 3 % CALLED_FUNCTIONS), 2);
    put_stack(m, CALLEE, scene.callee_stack);
    if (l->frame_entry != LC_ABSENT) {
        made_up_put(m, made_up_frame_address(CALLEE) - MADE_UP_BASE + l->frame_entry, scene.by_way_of_c, 1);
    }
}

static void open_scene(int32_t caller_stack, int32_t callee_stack, bool by_way_of_c, bool caller_goes_on)
{
    scene.caller_stack = caller_stack;
    scene.callee_stack = callee_stack;
    scene.by_way_of_c = by_way_of_c;
    scene.caller_goes_on = caller_goes_on;
    open_source_that_counts(version, 3);
    for (uint32_t i = 0; i < CALLED_FUNCTIONS; i++) {
        made_up_code(&memory, 4 + i, "called", 200 + i);
    }
    memory.before_read = one_function_after_another;
    source.layout.opcodes = has_stacktop() ? NULL : opcodes;
    for (uint32_t i = 0; i < 100; i++) { /* until all of their code is trusted */
        (void)walk();
    }
}

/* Whether the stack is whole, and its innermost frame is of that function. */
static void check_given(bool whole, const char *innermost)
{
    CHECK(walk() == LC_WALK_OK && walk() == LC_WALK_OK);
    CHECK(stack.inner_cut == !whole && is_named(&stack.frames[0], innermost));
    CHECK(stack.count == (strcmp(innermost, "called") == 0 ? 3 : 2));
    lc_cpython_source_close(&source);
}

TEST(test_a_callee_is_given_out_where_its_caller_is_seen_to_be_in_the_call)
{
    open_scene(CALLS, RUNS, false, false);
    check_given(true, "called");
    open_scene(RUNS, RUNS, false, false);
    check_given(false, "second");
}

TEST(test_a_callee_whose_code_may_have_died_is_not_given_out)
{
    open_scene(CALLS, RUNS, false, false);
    source.deaths = NULL;
    check_given(false, "second");
    open_scene(CALLS, RUNS, false, false);
    for (uint32_t i = 0; i < CALLED_FUNCTIONS; i++) {
        lc_deaths_add(&deaths, code_at(4 + i));
    }
    CHECK(walk() == LC_WALK_OK && stack.inner_cut && is_named(&stack.frames[0], "second"));
    lc_cpython_source_close(&source);
}

TEST(test_a_frame_that_has_ended_is_not_given_out)
{
    open_scene(RUNS, RUNS, false, false);
    scene.callee_stack = CALLS;
    check_given(true, "second");
}

TEST(test_by_way_of_c_code_the_caller_has_to_stand)
{
    open_scene(RUNS, RUNS, true, false);
    check_given(true, "called");
    if (lc_layout_find(version)->frame_entry != LC_ABSENT) { /* elsewhere a shim stands for it */
        open_scene(RUNS, RUNS, true, true);
        check_given(false, "second");
    }
}

/* The look at which frame is the innermost one finds the caller, which calls right then. */
TEST(test_a_callee_that_runs_by_now_is_found)
{
    open_scene(CALLS, RUNS, false, false);
    made_up_top(&memory, made_up_frame_address(CALLER));
    CHECK(walk() == LC_WALK_OK && stack.inner_cut == !has_stacktop());
    CHECK(is_named(&stack.frames[0], has_stacktop() ? "called" : "second"));
    lc_cpython_source_close(&source);
}

/* Of another process's frames, from 3.14 on. */
TEST(test_where_nothing_tells_the_frame_that_stood_is_given)
{
    open_scene(CALLS, RUNS, false, false);
    source.layout.opcodes = NULL;
    check_given(has_stacktop(), has_stacktop() ? "called" : "second");
}

/* The callee is where nothing was copied: that there is one is known. */
TEST(test_a_caller_whose_callee_was_not_seen_is_said_to_be_one)
{
    open_scene(CALLS, RUNS, false, false);
    scene.callee_stack = CALLS;
    check_given(false, "second");
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
    CHECK(lc_layout_find(0x030A0FF0) == NULL);  /* 3.10 */
    CHECK(lc_layout_find(0x031000F0) == NULL);  /* 3.16 */
    CHECK(lc_layout_find(0x030F00B1) == NULL);  /* 3.15 beta */
    CHECK(lc_layout_find(0x030F00C1) != NULL && lc_layout_find(0x030B07F0) != NULL);
}

int main(void)
{
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        version = versions[i];
        run_tests();
    }
    test_unknown_versions_have_no_layout();
    return 0;
}
