/* Frames that come and go: the innermost one is another one in each reading. */
#include "cpython/layouts/layout.h"
#include "tests/cpython/walker/made_up_walks.h"

enum { RUNS = -1, CALLS = 3, CALLER = 1, CALLEE = 2, ENTRY = 8, CALLED_FUNCTIONS = 11 };

/* What the callers' words say, where the version tells it. */
static struct {
    int32_t caller_stack; /* depth of its value stack */
    int32_t callee_stack;
    bool by_way_of_c;    /* the caller calls a C function, which calls the callee */
    bool caller_goes_on; /* it is changed by each read */
} scene;

enum { OPCODE_RUNS = 10, OPCODE_CALLS = 11 };
static const uint8_t opcodes[256] = {[OPCODE_RUNS] = LC_OPCODE_RUNS, [OPCODE_CALLS] = LC_OPCODE_CALLS};

static bool has_stacktop(void) { return lc_layout_find(version)->frame_stack_bytes == 4; }

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
    /* a word that nobody asks for */
    made_up_put(m, caller - MADE_UP_BASE + 16, scene.caller_goes_on ? m->reads : 0, 8);
    put_stack(m, CALLER, scene.caller_stack);
    if (shim) {
        made_up_put(m, entry - MADE_UP_BASE + l->frame_previous, caller, 8);
        made_up_put(m, entry - MADE_UP_BASE + l->frame_owner, l->owner_shim, 1);
    }
    made_up_frame(m, CALLEE, shim ? entry : caller,
                  4 + (uint32_t)((m->reads + source.counts.walks) / 3 % CALLED_FUNCTIONS), 2);
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
    CHECK(stack.came_and_went); /* whichever is given out */
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

int main(void)
{
    run_tests_of_all_versions();
    return 0;
}
