/* A coroutine that awaits another one is suspended, and has it on its value stack. What is between coroutines
 * refers to the next one by its first word. */
#include <string.h>

#include "cpython/objects/attributes.h"
#include "cpython/objects/objects.h"
#include "cpython/tasks/tasks.h"
#include "cpython/walker/frame_values.h"
#include "cpython/walker/walker.h"

enum {
    LOOP = 16,     /* in a future and a task, of every version: behind the object's head */
    CALLBACK = 24, /* the same: FutureObj_HEAD, Modules/_asynciomodule.c */
    CALLBACKS = 40,
    WRAPPED = 16,
    HEAD_MAX = LC_FRAME_BYTES_MAX + 96,
    MANAGERS_DEEP = 4,
    NAMES_MAX = 1024
};

/* Types with one word, what they await: Objects/genobject.c, Objects/iterobject.c; asyncio's is the end, a future. */
static const char *const wrappers[] = {"coroutine_wrapper", "async_generator_asend", "async_generator_athrow",
                                       "anext_awaitable"};

static bool is_text(lc_text text, const char *other)
{
    return text.length == strlen(other) && memcmp(text.bytes, other, text.length) == 0;
}

enum { GENERATOR, WRAPPER, OTHER };

/* Which of these the object is. Coroutines, of which a chain is made, are known without reading a name. */
static int kind_of(const lc_cpython_source *source, uint64_t object)
{
    char name[32];
    const uint64_t type = lc_type_at(source, object);
    if (type == 0 || type == source->at.coroutine_type || type == source->at.generator_type) {
        return type == 0 ? OTHER : GENERATOR;
    }
    const uint64_t at = lc_word_at(source, type + source->layout.type_name);
    const uint32_t length = at == 0 ? 0 : lc_read_c_string(source, at, name, sizeof name);
    const lc_text text = {name, length};
    for (size_t i = 0; i < sizeof wrappers / sizeof wrappers[0]; i++) {
        if (is_text(text, wrappers[i])) {
            return WRAPPER;
        }
    }
    return is_text(text, "async_generator") ? GENERATOR : OTHER;
}

static lc_task_state state_of(const lc_layout *layout, int8_t state)
{
    const int created = (int)layout->state_created, executing = (int)layout->state_executing;
    return state < created || state > executing ? LC_TASK_ENDED
           : state == created                   ? LC_TASK_BEGINS
           : state == executing                 ? LC_TASK_RUNS
                                                : LC_TASK_SUSPENDED;
}

/* A generator's frame, with the values of its stack. */
typedef struct {
    lc_task_state state;
    lc_await await;
    uint32_t count;
    uint64_t values[LC_FRAME_SLOTS_MAX];
} generator;

/* How many values the stack of a suspended frame has. Up to 3.13 its word counts the locals, too. */
static uint32_t stack_depth(const lc_layout *l, const lc_raw_frame *frame, const lc_frame_shape *shape)
{
    const uint64_t slots = l->frame_stack_bytes == 4
                               ? (uint32_t)frame->stack
                               : (frame->stack - frame->address - l->frame_bytes) / 8; /* wraps below it */
    return slots >= shape->locals && slots - shape->locals <= shape->stack ? (uint32_t)slots - shape->locals
                                                                           : 0;
}

static bool read_generator(const lc_cpython_source *source, uint64_t object, generator *out)
{
    const lc_layout *l = &source->layout;
    uint8_t head[HEAD_MAX] = {0};
    lc_frame_shape shape;
    if (!lc_read(source->reader, object, head, l->generator_frame + l->frame_bytes)) {
        return false;
    }
    const uint8_t *words = head + l->generator_frame;
    out->state = state_of(l, (int8_t)head[l->generator_state]);
    out->count = 0;
    if (out->state == LC_TASK_ENDED) {
        return true;
    }
    const lc_raw_frame frame = {
        .address = object + l->generator_frame,
        .code = lc_u64_at(words, l->frame_code) & ~(uint64_t)l->frame_tags,
        .instr = lc_u64_at(words, l->frame_instr),
        .stack =
            l->frame_stack_bytes == 4 ? lc_u32_at(words, l->frame_stack) : lc_u64_at(words, l->frame_stack),
    };
    if (!lc_frame_shape_read(source, &frame, &shape)) {
        return false;
    }
    out->await = (lc_await){.code = frame.code, .instr = frame.instr};
    if (shape.locals > 0 && !lc_frame_slots_read(source, &frame, 0, 1, &out->await.first)) {
        return false;
    }
    out->count = out->state == LC_TASK_SUSPENDED ? stack_depth(l, &frame, &shape) : 0;
    return out->count == 0 || lc_frame_slots_read(source, &frame, shape.locals, out->count, out->values);
}

/* ---- `with` and `async with` ------------------------------------------------------------------------------------- */

/* Slot i is what such a block will call: up to 3.13 the bound __aexit__, later the object behind the
 * function. */
static bool exit_at(const lc_cpython_source *source, const generator *g, uint32_t i, lc_held *out)
{
    const lc_layout *l = &source->layout;
    const bool is_bound = l->with_words == 1;
    if (is_bound ? lc_type_at(source, g->values[i]) != source->at.method_type : i == 0) {
        return false;
    }
    const uint64_t function =
        is_bound ? lc_word_at(source, g->values[i] + l->method_function) : g->values[i - 1];
    out->object = is_bound ? lc_word_at(source, g->values[i] + l->method_self) : g->values[i];
    if (lc_type_at(source, function) != source->at.function_type) {
        return false;
    }
    out->function = lc_word_at(source, function + l->function_qualname);
    return lc_str_ends(source, out->function, ".__aexit__") ||
           lc_str_ends(source, out->function, ".__exit__");
}

/* Whether the frame's code calls something `release`, as `with` does not: then its block may hold nothing. */
static bool releases(const lc_cpython_source *source, uint64_t code)
{
    const uint64_t names = lc_word_at(source, code + source->layout.code_names);
    const lc_layout *l = &source->layout;
    const bool is_tuple = names != 0 && lc_type_at(source, names) == source->at.tuple_type;
    const uint64_t count = is_tuple ? lc_word_at(source, names + l->var_size) : 0;
    for (uint64_t i = 0; i < count && i < NAMES_MAX; i++) {
        if (lc_str_is(source, lc_word_at(source, names + l->tuple_items + 8 * i), "release")) {
            return true;
        }
    }
    return false;
}

/* Where there is no more room, locks go before what is none. */
static void keep(lc_await *await, uint64_t object, uint64_t function, bool is_lock)
{
    if (object != 0 && (is_lock || await->held_count < LC_HELD_MAX)) {
        await->held_count -= await->held_count == LC_HELD_MAX;
        await->held[await->held_count++] = (lc_held){object, function};
    }
}

/* Of contextlib's managers, which are made of generators. */
static bool is_generators(const lc_cpython_source *source, uint64_t function)
{
    return lc_str_is(source, function, "_AsyncGeneratorContextManager.__aexit__") ||
           lc_str_is(source, function, "_GeneratorContextManager.__exit__");
}

/* asyncio.Condition holds its lock; a manager that contextlib makes of a generator, what the generator does. */
static void add_held(lc_cpython_source *source, const generator *g, lc_await *await, uint32_t deep)
{
    for (uint32_t i = 0; i < g->count; i++) {
        lc_held held;
        generator inner;
        if (!exit_at(source, g, i, &held)) {
            continue;
        }
        const bool is_lock = lc_str_is(source, held.function, LC_LOCK_EXIT);
        if (is_lock && releases(source, g->await.code)) {
            continue;
        }
        keep(await, held.object, held.function, is_lock);
        if (is_lock) {
            keep(await, lc_attribute(source, held.object, "_lock"), 0, true);
        }
        if (deep > 0 && is_generators(source, held.function) &&
            read_generator(source, lc_attribute(source, held.object, "gen"), &inner)) {
            add_held(source, &inner, await, deep - 1);
        }
    }
}

/* ---- tasks ------------------------------------------------------------------------------------------- */

/* Follows the coroutine inwards. A chain that comes back to where it was is as long as it may be. */
static void follow(lc_cpython_source *source, uint64_t object, uint32_t most, lc_task *out)
{
    generator g;
    int kind = OTHER;
    for (uint32_t steps = 0; object != 0 && (kind = kind_of(source, object)) != OTHER; steps++) {
        if (out->count == most || steps == 2 * LC_AWAITS_MAX) {
            out->cut = true;
            return;
        }
        if (kind == WRAPPER) {
            object = lc_word_at(source, object + WRAPPED);
            continue;
        }
        if (!read_generator(source, object, &g)) {
            out->state = LC_TASK_UNREADABLE;
            return;
        }
        if (out->count == 0) {
            out->state = g.state;
        }
        if (g.state == LC_TASK_ENDED) {
            return;
        }
        lc_await *await = &out->awaits[out->count++];
        *await = g.await;
        add_held(source, &g, await, MANAGERS_DEEP);
        const uint32_t from_top = source->layout.awaited_slot;
        object = g.count < from_top ? 0 : g.values[g.count - from_top];
    }
    out->end = object;
}

/* The task that awaits a future is among its callbacks, until it is done: then it has none. Its task refers to
 * it until the loop, which may be blocked, comes round. */
static bool is_done(const lc_cpython_source *source, const lc_tasks *tasks, uint64_t future)
{
    return lc_word_at(source, future + CALLBACK) == 0 && lc_word_at(source, future + CALLBACKS) == 0 &&
           lc_is_instance(source, future, tasks->future);
}

void lc_task_read(lc_cpython_source *source, const lc_tasks *tasks, uint64_t task, uint32_t most,
                  lc_task *out)
{
    const uint32_t at = tasks->coroutine;
    out->state = LC_TASK_UNREADABLE;
    out->cut = false;
    out->end = 0;
    out->count = 0;
    out->loop = lc_word_at(source, task + LOOP);
    out->callback = lc_word_at(source, task + CALLBACK);
    out->future = lc_word_at(source, task + at - 8);
    out->future = is_done(source, tasks, out->future) ? 0 : out->future;
    out->name = lc_word_at(source, task + at + 8);
    if (at != 0) {
        follow(source, lc_word_at(source, task + at), most, out);
    }
}

uint64_t lc_future_callback(const lc_cpython_source *source, uint64_t future)
{
    return future == 0 ? 0 : lc_word_at(source, future + CALLBACK);
}

uint64_t lc_callback_name(const lc_cpython_source *source, uint64_t callback)
{
    const lc_layout *l = &source->layout;
    const uint64_t function = callback != 0 && lc_type_at(source, callback) == source->at.method_type
                                  ? lc_word_at(source, callback + l->method_function)
                                  : callback;
    return function != 0 && lc_type_at(source, function) == source->at.function_type
               ? lc_word_at(source, function + l->function_qualname)
               : 0;
}

bool lc_place_read(lc_cpython_source *source, uint64_t code, uint64_t instr, lc_place *out)
{
    const lc_layout *l = &source->layout;
    lc_code_cache *cache = &source->walker->cache;
    uint8_t header[LC_CODE_HEADER_MAX];
    lc_str_value file = {.bytes = out->file}, qualname = {.bytes = out->qualname};
    uint32_t length = 0;
    if (!lc_read(source->reader, code, header, l->code_bytes) ||
        lc_u64_at(header, l->object_type) != source->at.code_type ||
        !lc_read_str(source, lc_u64_at(header, l->code_filename), source->walker->scratch, &file) ||
        !lc_read_str(source, lc_u64_at(header, l->code_qualname), source->walker->scratch, &qualname)) {
        return false;
    }
    out->file_length = file.length;
    out->qualname_length = qualname.length;
    out->first_line = lc_u32_at(header, l->code_first_line);
    out->flags = lc_u32_at(header, l->code_flags);
    out->position = (lc_position){0};
    if (lc_read_bytes(source, lc_u64_at(header, l->code_linetable), cache->scratch, LC_BYTES_MAX, &length)) {
        lc_linetable_find(cache->scratch, length, out->first_line, (instr - code - l->code_bytes) / 2,
                          &out->position);
    }
    return true;
}
