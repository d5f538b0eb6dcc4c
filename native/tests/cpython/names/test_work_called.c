/* What a loop has called: by the stack, and by what asyncio says is the loop's current task. */
#include "cpython/names/work_words.h"

#include <string.h>

#include "fuzz/made_up_memory.h"
#include "tests/check.h"

enum { THREAD = 0x100, TASKS = 0x200, KEYS = 0x300, DICT_KEYS = 32, INDEX_BITS = 3, RUNNING_LOOP = 64 };

static const uint64_t loop = 0x11111110, other_loop = 0x22222220, task = 0x33333330;

static made_up_memory memory;
static lc_cpython_source source;

static void put(uint64_t at, uint64_t value, uint32_t bytes) { made_up_put(&memory, at, value, bytes); }

static void put_entry(uint32_t index, uint64_t key, uint64_t value)
{
    const uint64_t at = KEYS + LC_DICT_INDEX + (1u << INDEX_BITS) + 24u * index;
    put(at + 8, key, 8);
    put(at + 16, value, 8);
}

static void set_up(uint32_t running_loop)
{
    memset(&memory, 0, sizeof memory);
    memory.reader = (lc_memory_reader){.read = made_up_read};
    source = (lc_cpython_source){.reader = &memory.reader, .layout = {.dict_keys = DICT_KEYS}};
    source.asyncio.running_loop = running_loop;
    source.asyncio.current_tasks = running_loop == 0 ? made_up_at(TASKS) : 0;
    put(TASKS + DICT_KEYS, made_up_at(KEYS), 8);
    put(KEYS + LC_DICT_INDEX_BITS, INDEX_BITS, 1);
    put(KEYS + LC_DICT_USED, 3, 8);
    put_entry(0, loop, 0); /* an entry that is gone */
    put_entry(1, other_loop, task + 8);
    put_entry(2, loop, task);
}

static uint64_t task_of(uint64_t its_loop)
{
    return lc_called_task(&source, lc_called_work(its_loop, 2), made_up_at(THREAD));
}

TEST(test_the_loop_s_entry_in_the_dict_is_its_task)
{
    set_up(0);
    CHECK(task_of(loop) == task && task_of(other_loop) == task + 8);
    CHECK(task_of(0) == 0 && task_of(loop + 8) == 0);
}

TEST(test_a_table_that_is_none_has_no_task)
{
    set_up(0);
    put(KEYS + LC_DICT_KIND, 1, 1); /* keys that are all strings */
    CHECK(task_of(loop) == 0);
    set_up(0);
    put(KEYS + LC_DICT_USED, UINT64_C(1) << 40, 8);
    CHECK(task_of(loop) == 0);
    set_up(0);
    put(KEYS + LC_DICT_INDEX_BITS, 200, 1);
    CHECK(task_of(loop) == 0);
    set_up(0);
    put(TASKS + DICT_KEYS, 0x10, 8); /* no memory */
    CHECK(task_of(loop) == 0);
}

TEST(test_the_thread_s_task_counts_with_its_loop)
{
    set_up(RUNNING_LOOP);
    put(THREAD + RUNNING_LOOP, loop, 8);
    put(THREAD + RUNNING_LOOP + 8, task, 8);
    CHECK(task_of(loop) == task && task_of(other_loop) == 0 && task_of(0) == 0);
}

TEST(test_the_function_is_inside_the_frames_around_the_loop)
{
    const lc_code_facts codes[] = {
        {.qualname = {"inner", 5}}, {.qualname = {"called", 6}}, {.qualname = {"main", 4}}};
    static lc_stack stack;
    stack.count = 3;
    for (uint32_t i = 0; i < stack.count; i++) {
        stack.frames[i].code = &codes[i];
    }
    CHECK(lc_called_function(lc_called_work(loop, 1), &stack).bytes == codes[1].qualname.bytes);
    CHECK(lc_called_function(lc_called_work(0, 0), &stack).bytes == codes[2].qualname.bytes);
    CHECK(lc_called_function(lc_called_work(loop, 3), &stack).length == 0);
    CHECK(lc_called_function(lc_called_work(loop, UINT16_MAX), &stack).length == 0);
    CHECK(lc_called_function(lc_called_work(loop, 1), NULL).length == 0);
    stack.truncated = true;
    CHECK(lc_called_function(lc_called_work(loop, 1), &stack).length == 0);
}

TEST(test_a_word_is_told_from_others)
{
    CHECK(lc_is_called_work(lc_called_work(0, 0)) && lc_is_called_work(lc_called_work(loop, 7)));
    CHECK(!lc_is_called_work(0) && !lc_is_called_work(loop) && !lc_is_called_work(loop | 1u) &&
          !lc_is_called_work(loop | 2u));
}

int main(void) { return run_tests(); }
