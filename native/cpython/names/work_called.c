#include "cpython/names/work_called.h"

#include "cpython/objects/dict_keys.h"

#define CURRENT_TASKS_MAX 64u /* one for each loop that runs a task */

typedef struct {
    uint64_t hash, key, value;
} dict_entry;

lc_text lc_called_function(uint64_t work, const lc_stack *stack)
{
    const uint64_t outside = work >> 48;
    if (stack == NULL || stack->truncated || stack->count <= outside) {
        return (lc_text){0};
    }
    return stack->frames[stack->count - outside - 1u].code->qualname;
}

/* The value of an object in a dict whose keys are no strings: the table is read from its first entry to its last, since other
 * threads' loops change it meanwhile. */
static uint64_t find_in_dict(const lc_cpython_source *source, uint64_t dict, uint64_t key)
{
    dict_entry entry;
    uint64_t used = 0;
    const uint64_t table = dict == 0 ? 0 : lc_word_at(source, dict + source->layout.dict_keys);
    const uint64_t entries = lc_dict_entries(source, table, LC_DICT_GENERAL, CURRENT_TASKS_MAX, &used);
    for (uint64_t i = 0; i < used && entries != 0; i++) {
        if (!lc_read(source->reader, entries + i * sizeof entry, &entry, sizeof entry)) {
            return 0;
        }
        if (entry.key == key && entry.value != 0) {
            return entry.value;
        }
    }
    return 0;
}

uint64_t lc_called_task(const lc_cpython_source *source, uint64_t work, uint64_t thread_state)
{
    const uint64_t loop = work & LC_WORK_CALLED_LOOP_MASK;
    if (loop == 0) {
        return 0;
    }
    if (source->asyncio.running_loop == 0) {
        return find_in_dict(source, source->asyncio.current_tasks, loop);
    }
    /* The two words belong together: where the loop is the one that is asked about, the next is its task. The caller checks
     * the task's type, since the thread may leave it between the two reads. */
    const uint64_t loop_at = thread_state + source->asyncio.running_loop;
    return lc_word_at(source, loop_at) == loop ? lc_word_at(source, loop_at + sizeof(uint64_t)) : 0;
}
