/* A whole walk over memory that lies. The input is a script: a byte for the CPython version, one for
 * the depth of the stack, then changes of 6 bytes each: when (before which read, 0: at the start),
 * where (2 bytes, in words), how (a pointer into the memory, or a number), and what (2 bytes). */
#include <string.h>

#include "fuzz/made_up_memory.h"
#include "fuzz/target.h"
#include "cpython/names/work_words.h"
#include "cpython/tasks/tasks.h"

#define CHANGE_BYTES 6u
#define CHANGES_MAX 48u
#define VERSIONS 5u

typedef struct {
    const uint8_t *changes;
    size_t count;
} script;

static void apply(made_up_memory *m, const uint8_t *change)
{
    const uint64_t where = (uint64_t)(change[1] | change[2] << 8) * 4;
    const uint64_t what = (uint64_t)(change[4] | change[5] << 8);
    switch (change[3] % 5) {
    case 0:
        made_up_put(m, where, made_up_at(what * 8), 8);
        break;
    case 1:
        made_up_put(m, where, what, 8);
        break;
    case 2:
        made_up_put(m, where, what << 48 | what, 8);
        break;
    case 3:
        made_up_put(m, where, what, 1);
        break;
    default:
        made_up_put(m, where, what, 4);
        break;
    }
}

static void run_script(made_up_memory *m)
{
    const script *s = m->script;
    for (size_t i = 0; i < s->count; i++) {
        if (s->changes[i * CHANGE_BYTES] == m->reads) {
            apply(m, s->changes + i * CHANGE_BYTES);
        }
    }
}

static void check_stack(lc_walk_result result, const lc_stack *stack)
{
    LC_FUZZ_HOLDS(result <= LC_WALK_UNREADABLE && stack->count <= LC_STACK_FRAMES_MAX);
    LC_FUZZ_HOLDS((result == LC_WALK_OK) == (stack->count > 0));
    for (uint32_t i = 0; i < stack->count; i++) {
        const lc_code_facts *code = stack->frames[i].code;
        LC_FUZZ_HOLDS(code != NULL && code->serial != 0);
        LC_FUZZ_HOLDS(code->qualname.length <= LC_STRING_MAX && code->filename.length <= LC_STRING_MAX);
        volatile char last =
            code->qualname.length == 0 ? '\0' : code->qualname.bytes[code->qualname.length - 1];
        (void)last;
    }
}

/* Code objects pass for locks, and words behind a frame for its values: a frame's slots reach into the
 * next one. */
static void ask_for_locks(made_up_memory *m, lc_cpython_source *source, lc_frame_source *seam)
{
    const lc_layout *l = m->layout;
    const lc_interpreter_addresses at = made_up_addresses();
    for (uint64_t i = 0; i < 4; i++) {
        const uint64_t code = MADE_UP_CODES + i * MADE_UP_CODE_STRIDE;
        made_up_put(m, code + l->code_locals, i, 4);
        made_up_put(m, code + l->code_stack_size, 12, 4);
        made_up_put(m, code + l->code_exceptions, made_up_at(MADE_UP_TABLES + i * MADE_UP_TABLE_STRIDE), 8);
    }
    run_script(m);
    source->locks.learned = true;
    source->locks.descriptor_type = at.code_type;
    for (int type = 0; type < LC_LOCK_TYPES; type++) {
        lc_lock_view lock;
        memset(source->locks.types, 0, sizeof source->locks.types);
        source->locks.types[type] = at.code_type;
        for (uint64_t i = 0; type == LC_TYPE_SEMLOCK && i < 4; i++) {
            /* where it is slept on */
            made_up_put(m, MADE_UP_CODES + i * MADE_UP_CODE_STRIDE + 16, MADE_UP_UNITS, 8);
        }
        const lc_lock_question question = {made_up_at(MADE_UP_THREAD), MADE_UP_UNITS,
                                           made_up_at(MADE_UP_THREAD), true, true};
        seam->lock(seam, &question, &lock);
        LC_FUZZ_HOLDS(lock.kind <= LC_LOCK_SHARED_SEMAPHORE && lock.proof <= LC_PROOF_WITH);
        LC_FUZZ_HOLDS((lock.proof == LC_PROOF_NONE) == (lock.holder_thread_state == 0));
        LC_FUZZ_HOLDS(type == LC_TYPE_SEMLOCK || lock.kind <= LC_LOCK_THREAD);
        LC_FUZZ_HOLDS(lock.module.length <= LC_STRING_MAX);
    }
}

/* Code objects pass for tasks, coroutines, dicts and sets, and what lies in them for what these refer to. */
static void ask_for_tasks(made_up_memory *m, lc_cpython_source *source)
{
    static lc_task task;
    lc_pair all[16];
    uint32_t others;
    lc_tasks tasks = {0};
    const uint64_t code = made_up_at(MADE_UP_CODES), interp = made_up_at(MADE_UP_INTERP);
    source->at.coroutine_type = source->at.code_type;
    made_up_put(m, MADE_UP_INTERP + m->layout->interp_modules, code, 8);
    run_script(m);
    lc_tasks_find(source, interp, &tasks);
    tasks = (lc_tasks){.type = source->at.code_type,
                       .sets = {code, code + 8},
                       .node = 64,
                       .interp_head = m->layout->interp_threads};
    source->locks.types[LC_TYPE_REFERENCE] = source->at.str_type;
    const uint32_t count = lc_tasks_list(source, &tasks, interp, NULL, 0, all, 16, &others);
    LC_FUZZ_HOLDS(count <= 16);
    lc_tasks_learn(source, &tasks, all, count);
    tasks.coroutine = m->layout->code_linetable;
    for (uint64_t i = 0; i < 4; i++) {
        lc_task_read(source, &tasks, code + i * MADE_UP_CODE_STRIDE, LC_AWAITS_MAX, &task);
        LC_FUZZ_HOLDS(task.state <= LC_TASK_ENDED && task.count <= LC_AWAITS_MAX);
    }
}

static void counting(struct _object *code) { (void)code; }

static lc_code_destructor slot = counting;
static lc_code_deaths deaths;

LC_FUZZ_TARGET(chain)
{
    static made_up_memory memory;
    static lc_stack stack;
    if (size < 2) {
        return 0;
    }
    const uint64_t version = (uint64_t)(0x030B + data[0] % VERSIONS) << 16 | 0xF0;
    /* Mostly shallow, for speed; sometimes deeper than is ever shown. */
    made_up_interpreter(&memory, version, data[1] < 240 ? data[1] % 12u : data[1] * 2u);
    const size_t count = (size - 2) / CHANGE_BYTES;
    const script changes = {data + 2, count < CHANGES_MAX ? count : CHANGES_MAX};
    memory.script = &changes;
    memory.before_read = run_script;
    run_script(&memory);

    const lc_interpreter_addresses at = made_up_addresses();
    lc_cpython_source source;
    if (!lc_cpython_source_init(&source, &memory.reader, memory.layout, &at)) {
        return 0;
    }
    if (data[0] >= 128) { /* code that changes, and no death of it was counted */
        deaths = (lc_code_deaths){.slot = &slot, .counting = counting};
        source.deaths = &deaths;
        source.at.interp = made_up_at(MADE_UP_INTERP);
    }
    static uint8_t opcodes[256]; /* each kind of LC_OPCODE_RUNS and its like, in turn */
    for (uint32_t i = 0; i < sizeof opcodes; i++) {
        opcodes[i] = i % 4;
    }
    source.layout.opcodes = source.layout.frame_stack_bytes == 8 ? opcodes : NULL;
    lc_frame_source *seam = &source.source;
    const uint64_t thread = made_up_at(MADE_UP_THREAD);
    for (int walk = 0; walk < 4; walk++) { /* cold, warm, trusting, and after what the script did */
        check_stack(seam->walk(seam, thread, &stack), &stack);
    }
    lc_thread_ref threads[16];
    lc_gil_view gil;
    lc_work_names names;
    LC_FUZZ_HOLDS(seam->threads(seam, thread, threads, 16) <= 16);
    seam->gil(seam, thread, &gil);
    source.asyncio.handle_type = at.code_type; /* whatever is at a code object's address will do */
    source.asyncio.handle_callback = memory.layout->code_qualname;
    source.asyncio.task_type = at.str_type;
    source.asyncio.task_coroutine = 16;
    source.asyncio.task_name = 24;
    source.asyncio.step_type = at.bytes_type;
    source.asyncio.step_task = 32;
    source.asyncio.learned = true;
    source.asyncio.current_tasks = made_up_at(MADE_UP_STRINGS);
    const uint64_t works[] = {made_up_at(MADE_UP_CODES), lc_called_work(made_up_at(MADE_UP_CODES), 1)};
    seam->work(seam, works[data[0] & 1u], thread, &stack, &names);
    LC_FUZZ_HOLDS(names.callback.length <= LC_STRING_MAX && names.task.length <= LC_STRING_MAX);
    LC_FUZZ_HOLDS(seam->text(seam, made_up_at(MADE_UP_STRINGS)).length <= LC_STRING_MAX);
    ask_for_locks(&memory, &source, seam);
    ask_for_tasks(&memory, &source);
    lc_cpython_source_close(&source);
    return 0;
}
