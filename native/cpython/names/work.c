/* From an asyncio Handle to the name of what it runs. Each step is taken only from an object whose
 * type is the one expected: anything else gives no name rather than a wrong one.
 *
 *   Handle._callback = a function, bound method, partial, builtin
 *                    = a task's step (TaskStepMethWrapper) or wake-up (builtin bound to the task):
 *                      the task's coroutine is what runs, and the task has a name
 *
 * A str in a Handle's place is the name itself. A task of trio's is named like one of asyncio's.
 */
#include "cpython/names/work.h"

#include <errno.h>
#include <stdio.h>

#include "cpython/objects/objects.h"
#include "cpython/walker/walker.h"
#include "cpython/names/work_words.h"

#define CALLABLE_DEPTH_MAX 8u /* partial of partial of method of ... */
#define BASES_MAX 8u
#define C_NAME_MAX 128u

enum { TEXT_CALLBACK, TEXT_TASK, TEXT_ANY, TEXTS };

/* A source with room for texts, which is its reader's own: the watchdog's, or that of a thread that names
 * what it ran. */
typedef struct {
    lc_cpython_source *source;
    uint8_t *scratch;            /* LC_STR_BYTES_MAX bytes */
    char (*text)[LC_STRING_MAX]; /* TEXTS of them */
    uint64_t thread_state;       /* of the thread that runs the work; 0: it is over */
    const lc_stack *stack;       /* or NULL */
} naming;

static naming of_watchdog(lc_cpython_source *source, uint64_t thread_state, const lc_stack *stack)
{
    _Static_assert(TEXTS <= LC_TEXT_BUFFERS, "each text has its buffer");
    return (naming){source, source->walker->scratch, source->walker->text, thread_state, stack};
}

static bool is_instance(const lc_cpython_source *source, uint64_t object, uint64_t type)
{
    uint64_t each = lc_type_at(source, object);
    for (uint32_t i = 0; i < BASES_MAX && each != 0 && type != 0; i++) {
        if (each == type) {
            return true;
        }
        each = lc_word_at(source, each + source->layout.type_base);
    }
    return false;
}

static lc_text read_text(const naming *n, uint64_t str_object, uint32_t buffer)
{
    lc_str_value value = {.bytes = n->text[buffer]};
    if (!lc_read_str(n->source, str_object, n->scratch, &value)) {
        return (lc_text){0};
    }
    return (lc_text){value.bytes, value.length};
}

lc_text lc_text_of(lc_cpython_source *source, uint64_t str_object)
{
    const naming n = of_watchdog(source, 0, NULL);
    return read_text(&n, str_object, TEXT_ANY);
}

/* Only ASCII that can be printed. */
static uint32_t read_c_name(const lc_cpython_source *source, uint64_t address, char *into, uint32_t room)
{
    const uint32_t bytes = lc_read_c_string(source, address, into, room);
    for (uint32_t i = 0; i < bytes; i++) {
        if ((unsigned char)into[i] < 0x20 || (unsigned char)into[i] > 0x7E) {
            return 0;
        }
    }
    return bytes;
}

/* "append" of a builtin bound to a list becomes "list.append": type's and function's name, by C strings. A
 * type's name begins with its module's; no type, no point. */
static lc_text joined_name(const naming *n, uint64_t type_name, uint64_t name, uint32_t buffer)
{
    const lc_cpython_source *source = n->source;
    char type[C_NAME_MAX];
    char own[C_NAME_MAX];
    const uint32_t own_bytes = read_c_name(source, name, own, sizeof own);
    const uint32_t type_bytes = read_c_name(source, type_name, type, sizeof type);
    uint32_t last = type_bytes;
    while (last > 0 && type[last - 1] != '.') {
        last--;
    }
    if (own_bytes == 0) {
        return (lc_text){0};
    }
    char *out = n->text[buffer];
    const bool bound = type_bytes > last && strncmp(type + last, "module", type_bytes - last) != 0;
    const int bytes = snprintf(out, LC_STRING_MAX, "%.*s%s%.*s", bound ? (int)(type_bytes - last) : 0,
                               type + last, bound ? "." : "", (int)own_bytes, own);
    return (lc_text){out, (uint32_t)bytes};
}

static lc_text builtin_name(const naming *n, uint64_t builtin, uint64_t self)
{
    const lc_cpython_source *source = n->source;
    const uint64_t def = lc_word_at(source, builtin + source->layout.cfunction_def);
    const uint64_t type_name =
        self == 0 ? 0 : lc_word_at(source, lc_type_at(source, self) + source->layout.type_name);
    return joined_name(n, type_name, def == 0 ? 0 : lc_word_at(source, def), TEXT_CALLBACK);
}

static lc_text kind_name(const naming *n, lc_work_kind kind)
{
    if (kind.key & LC_KIND_QT) {
        return lc_qt_kind_name(n->source, kind, n->text[TEXT_ANY]);
    }
    if (kind.key & LC_KIND_C_STRING) {
        return joined_name(n, kind.owner, kind.key & ~LC_KIND_C_STRING, TEXT_ANY);
    }
    return read_text(n, kind.key, TEXT_ANY);
}

lc_text lc_kind_name(lc_cpython_source *source, lc_work_kind kind)
{
    const naming n = of_watchdog(source, 0, NULL);
    return kind_name(&n, kind);
}

static lc_text task_name(const naming *n, uint64_t name)
{
    uint64_t number = 0;
    if (!lc_read_int(n->source, name, &number)) { /* 3.12+: a counter until the name is asked for */
        return read_text(n, name, TEXT_TASK);
    }
    char *out = n->text[TEXT_TASK];
    const int bytes = snprintf(out, LC_STRING_MAX, "Task-%llu", (unsigned long long)number);
    return (lc_text){out, (uint32_t)bytes};
}

static void name_run(const naming *n, uint64_t coroutine, uint64_t name, lc_work_names *out)
{
    const lc_cpython_source *source = n->source;
    const uint64_t type = lc_type_at(source, coroutine);
    if (type != 0 && (type == source->at.coroutine_type || type == source->at.generator_type)) {
        out->callback =
            read_text(n, lc_word_at(source, coroutine + source->layout.generator_qualname), TEXT_CALLBACK);
    }
    out->task = task_name(n, name);
}

static void name_task(const naming *n, uint64_t task, lc_work_names *out)
{
    const lc_cpython_source *source = n->source;
    const lc_asyncio_facts *asyncio = &source->asyncio;
    if (is_instance(source, task, asyncio->task_type)) {
        name_run(n, lc_word_at(source, task + asyncio->task_coroutine),
                 lc_word_at(source, task + asyncio->task_name), out);
    }
}

static void name_callable(const naming *n, uint64_t callable, lc_work_names *out)
{
    const lc_cpython_source *source = n->source;
    const lc_layout *l = &source->layout;
    const lc_interpreter_addresses *at = &source->at;
    const lc_asyncio_facts *asyncio = &source->asyncio;
    for (uint32_t depth = 0; depth < CALLABLE_DEPTH_MAX; depth++) {
        const uint64_t type = lc_type_at(source, callable);
        if (type == 0) {
            return;
        }
        if (type == at->function_type) {
            out->callback = read_text(n, lc_word_at(source, callable + l->function_qualname), TEXT_CALLBACK);
            return;
        }
        if (type == asyncio->step_type && asyncio->task_type != 0) {
            name_task(n, lc_word_at(source, callable + asyncio->step_task), out);
            return;
        }
        if (type == at->cfunction_type) {
            const uint64_t self = lc_word_at(source, callable + l->cfunction_self);
            if (is_instance(source, self, asyncio->task_type)) {
                name_task(n, self, out);
            } else {
                out->callback = builtin_name(n, callable, self);
            }
            return;
        }
        if (type == at->method_type) {
            callable = lc_word_at(source, callable + l->method_function);
        } else if (type == asyncio->partial_type) {
            callable = lc_word_at(source, callable + asyncio->partial_function);
        } else {
            name_task(n, callable, out); /* if it is one */
            return;
        }
    }
}

static void name_noted_work(const naming *n, uint64_t work, lc_work_names *out)
{
    lc_work_note note;
    char text[LC_STRING_MAX];
    if (!lc_note_read(n->source, work, &note)) {
        return;
    }
    name_callable(n, note.callable, out);
    const lc_text signal = note.signal == 0 ? (lc_text){0} : read_text(n, note.signal, TEXT_ANY);
    const lc_text whole = lc_note_text(&note, out->callback, signal, text);
    memcpy(n->text[TEXT_CALLBACK], text, whole.length);
    out->callback = (lc_text){n->text[TEXT_CALLBACK], whole.length};
}

/* What is over is not on the stack any more. */
static void name_called(const naming *n, uint64_t work, lc_work_names *out)
{
    if (n->thread_state == 0) {
        return;
    }
    if (atomic_load_explicit(&n->source->asyncio.learned, memory_order_acquire)) {
        name_task(n, lc_called_task(n->source, work, n->thread_state), out); /* if it is one */
    }
    if (out->callback.length == 0) {
        out->callback = lc_called_function(work, n->stack);
    }
}

static void name_work(const naming *n, uint64_t work, lc_work_names *out)
{
    lc_cpython_source *source = n->source;
    *out = (lc_work_names){0};
    const lc_asyncio_facts *asyncio = &source->asyncio;
    if (lc_is_qt_work(work)) {
        out->callback = lc_qt_work_name(source, work, n->text[TEXT_CALLBACK]);
        return;
    }
    if (lc_is_noted_work(work)) {
        name_noted_work(n, work, out);
        return;
    }
    if (lc_is_called_work(work)) {
        name_called(n, work, out);
        return;
    }
    if (lc_type_at(source, work) == source->at.str_type) { /* work that the program has named itself */
        out->callback = read_text(n, work, TEXT_CALLBACK);
        return;
    }
    if (lc_is_trio_task(source, lc_type_at(source, work))) {
        name_run(n, lc_word_at(source, work + source->trio.task_coroutine),
                 lc_word_at(source, work + source->trio.task_name), out);
        return;
    }
    if (atomic_load_explicit(&asyncio->learned, memory_order_acquire) &&
        is_instance(source, work, asyncio->handle_type)) {
        name_callable(n, lc_word_at(source, work + asyncio->handle_callback), out);
        return;
    }
    name_callable(n, work, out);
}

void lc_work(lc_cpython_source *source, uint64_t work, uint64_t thread_state, const lc_stack *stack,
             lc_work_names *out)
{
    const naming n = of_watchdog(source, thread_state, stack);
    name_work(&n, work, out);
}

/* As much as there is room for, cut on a character's edge; the field is zero, and a NUL stays behind the
 * text. */
static void put_text(char *field, uint32_t room, lc_text text)
{
    uint32_t length = text.length < room ? text.length : room - 1u;
    while (length > 0 && length < text.length && ((unsigned char)text.bytes[length] & 0xC0u) == 0x80u) {
        length--;
    }
    if (length > 0) {
        memcpy(field, text.bytes, length);
    }
}

void lc_kind_text(lc_cpython_source *source, lc_work_kind kind, char *into)
{
    uint8_t scratch[LC_STR_BYTES_MAX];
    char text[TEXTS][LC_STRING_MAX];
    const naming n = {source, scratch, text, 0, NULL};
    const int error = errno;
    memset(into, 0, LC_STRING_MAX);
    put_text(into, LC_STRING_MAX, kind_name(&n, kind));
    errno = error;
}

void lc_work_ended(lc_cpython_source *source, uint64_t work, lc_long_work *entry)
{
    uint8_t scratch[LC_STR_BYTES_MAX];
    char text[TEXTS][LC_STRING_MAX];
    const naming n = {source, scratch, text, 0, NULL};
    lc_work_names names;
    const int error = errno;
    name_work(&n, lc_is_qt_work(work) ? lc_qt_work_ended(work) : work, &names);
    put_text(entry->name, sizeof entry->name, names.callback);
    put_text(entry->task, sizeof entry->task, names.task);
    errno = error;
}
