#include "cpython/names/work_words.h"

#include <string.h>

#include "cpython/objects/attributes.h"

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

/* The value of an object in a dict whose keys are no strings: the table is read from its first entry to
 * its last, since other threads' loops change it meanwhile. */
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
    const uint64_t loop = work & LC_WORK_ADDRESS_MASK;
    if (loop == 0) {
        return 0;
    }
    if (source->asyncio.running_loop == 0) {
        return find_in_dict(source, source->asyncio.current_tasks, loop);
    }
    /* The two words belong together: where the loop is the one that is asked about, the next is its task.
     * The caller checks the task's type, since the thread may leave it between the two reads. */
    const uint64_t loop_at = thread_state + source->asyncio.running_loop;
    return lc_word_at(source, loop_at) == loop ? lc_word_at(source, loop_at + sizeof(uint64_t)) : 0;
}

static const char *const ways[LC_WAYS] = {
    [LC_WAY_HANDLER] = "", [LC_WAY_IDLE] = "idle", [LC_WAY_TIMEOUT] = "timeout"};

bool lc_note_read(const lc_cpython_source *source, uint64_t work, lc_work_note *out)
{
    return lc_read(source->reader, work & ~LC_WORK_TAG_MASK, out, sizeof *out);
}

lc_text lc_note_text(const lc_work_note *note, lc_text name, lc_text signal, char *into)
{
    const char *front = note->way < LC_WAYS ? ways[note->way] : "";
    uint32_t used = 0;
    if (name.length == 0) {
        return (lc_text){0};
    }
    const lc_text colon = {": ", front[0] != '\0' || signal.length != 0 ? 2u : 0u};
    const lc_text before = front[0] != '\0' ? (lc_text){front, (uint32_t)strlen(front)} : signal;
    const lc_text parts[] = {before, colon, name};
    for (uint32_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const uint32_t room = LC_STRING_MAX - used;
        uint32_t part = parts[i].length < room ? parts[i].length : room;
        while (part < parts[i].length && part > 0 && ((unsigned char)parts[i].bytes[part] & 0xC0u) == 0x80u) {
            part--; /* not in the middle of a character */
        }
        if (part > 0) {
            memcpy(into + used, parts[i].bytes, part);
        }
        used += part;
    }
    return (lc_text){into, used};
}
