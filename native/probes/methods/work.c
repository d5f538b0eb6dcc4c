/* Which callback or task the calls of a thread belong to: noted in front of the first of them
 * (LC_CALLS_WORK).
 *
 * A name gets its number when it is first seen, and a line in the map (docs/internals/calls-format.md). Names
 * are those of functions, and what the program has called its tasks; numbers that asyncio gives to tasks are
 * left out: there is no end of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cpython/names/work.h"
#include "cpython/names/work_words.h"
#include "module/thread_lane.h"
#include "probes/methods/tracer_state.h"

#define RECORD_HEAD 13u
#define C_NAME_MAX 128u
#define HASH_MIX UINT64_C(0x9E3779B97F4A7C15)

/* The task that asyncio says is running, for loops that do not say it. Borrowed; may be NULL. */
static PyObject *called_task(const lc_asyncio_facts *asyncio, uint64_t work)
{
    PyObject *loop = (PyObject *)(uintptr_t)(work & LC_WORK_ADDRESS_MASK);
    if (loop == NULL || !atomic_load_explicit(&asyncio->learned, memory_order_acquire)) {
        return NULL;
    }
    if (asyncio->running_loop != 0) {
        PyObject *words[2]; /* the loop, and its task */
        memcpy(words, (const char *)PyThreadState_Get() + asyncio->running_loop, sizeof words);
        return words[0] == loop ? words[1] : NULL;
    }
    /* One entry a running loop. Not looked up by its hash, which may be the program's own code. */
    PyObject *tasks = (PyObject *)(uintptr_t)asyncio->current_tasks, *key, *task;
    Py_ssize_t at = 0;
    while (tasks != NULL && PyDict_CheckExact(tasks) && PyDict_Next(tasks, &at, &key, &task)) {
        if (key == loop) {
            return task;
        }
    }
    return NULL;
}

static bool is_task(const lc_asyncio_facts *asyncio, const void *object)
{
    return object != NULL && asyncio->task_type != 0 &&
           PyObject_TypeCheck((PyObject *)(uintptr_t)object, (PyTypeObject *)(uintptr_t)asyncio->task_type);
}

/* By its text: addresses of names are used again. Never 0. */
static uint64_t hash_of(uint64_t name)
{
    PyObject *text = (PyObject *)(uintptr_t)name;
    return text != NULL ? (uint64_t)PyUnicode_Type.tp_hash(text) | 1u : 1u;
}

/* FNV-1a of a C string; of nothing where there is none. */
static uint64_t hash_of_c(uint64_t hash, uint64_t address)
{
    const char *text = (const char *)(uintptr_t)address;
    for (unsigned i = 0; text != NULL && i < C_NAME_MAX && text[i] != '\0'; i++) {
        hash = (hash ^ (uint8_t)text[i]) * UINT64_C(0x100000001B3);
    }
    return hash;
}

static uint64_t hash_of_kind(lc_work_kind kind)
{
    if (kind.key & LC_KIND_C_STRING) {
        return hash_of_c(hash_of_c(UINT64_C(0xCBF29CE484222325), kind.key & ~LC_KIND_C_STRING), kind.owner) |
               1u;
    }
    return hash_of(kind.key);
}

/* "Task-12", which asyncio has made up; before the name is asked for it is a number. */
static bool is_made_up(PyObject *name)
{
    static const char start[] = "Task-";
    if (!PyUnicode_CheckExact(name) || !PyUnicode_IS_COMPACT_ASCII(name)) {
        return !PyUnicode_Check(name);
    }
    const char *text = (const char *)PyUnicode_1BYTE_DATA(name);
    const size_t length = (size_t)PyUnicode_GET_LENGTH(name);
    return length >= sizeof start && memcmp(text, start, sizeof start - 1) == 0 &&
           strspn(text + sizeof start - 1, "0123456789") == length - (sizeof start - 1);
}

/* What the program has named the task; 0: nothing. */
static uint64_t name_of_task(const lc_asyncio_facts *asyncio, const void *task)
{
    PyObject *name;
    memcpy(&name, (const char *)task + asyncio->task_name, sizeof name);
    return name != NULL && !is_made_up(name) ? (uint64_t)(uintptr_t)name : 0;
}

static void put(uint8_t *into, uint64_t value, size_t bytes)
{
    memcpy(into, &value, bytes); /* little-endian */
}

static bool write_record(uint32_t number, const char *name, const char *task)
{
    uint8_t record[RECORD_HEAD + 2u * LC_STRING_MAX] = {0};
    const size_t task_bytes = strlen(task), name_bytes = strlen(name);
    put(record, number, 4);
    put(record + 8, task_bytes, 2);
    put(record + 10, name_bytes, 2);
    memcpy(record + RECORD_HEAD, task, task_bytes);
    memcpy(record + RECORD_HEAD + task_bytes, name, name_bytes);
    const size_t bytes = RECORD_HEAD + task_bytes + name_bytes;
    /* Opened anew: programs close descriptors that they have not opened. */
    const int descriptor = open(lc_the_tracer.map, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
    const ssize_t written = descriptor >= 0 ? write(descriptor, record, bytes) : 0;
    struct stat now;
    /* half a record would hide all behind it */
    if (written > 0 && (size_t)written < bytes && fstat(descriptor, &now) == 0) {
        (void)!ftruncate(descriptor, now.st_size - written);
    }
    if (descriptor >= 0) {
        close(descriptor);
    }
    return written == (ssize_t)bytes;
}

/* 0: it cannot be written now. */
static uint32_t new_number(lc_work_kind kind, uint64_t task_name)
{
    char name[LC_STRING_MAX], task[LC_STRING_MAX] = "";
    lc_kind_text(&lc_the_agent.source, kind, name);
    if (task_name != 0) {
        lc_kind_text(&lc_the_agent.source, (lc_work_kind){task_name, 0}, task);
    }
    if (name[0] == '\0' && task[0] == '\0') {
        return LC_CALLS_WORK_OTHER;
    }
    const uint32_t number = LC_CALLS_WORK_FIRST + lc_the_tracer.work_count;
    const int error = errno;
    const bool written = write_record(number, name, task);
    errno = error;
    lc_the_tracer.work_count += written;
    return written ? number : 0;
}

static lc_traced_work *place_of(uint64_t hash)
{
    uint32_t at = (uint32_t)(hash * HASH_MIX >> 40) % LC_TRACED_WORKS_ROOM;
    while (lc_the_tracer.works[at].number != 0 && lc_the_tracer.works[at].hash != hash) {
        at = (at + 1u) % LC_TRACED_WORKS_ROOM;
    }
    return &lc_the_tracer.works[at];
}

/* Each name has one. Tasks of too many names count by their functions: they leave half of the room to
 * these. */
static uint32_t number_of(lc_work_kind kind, uint64_t task_name)
{
    const uint64_t hash = hash_of_kind(kind);
    lc_traced_work *place = place_of(task_name != 0 ? hash ^ hash_of(task_name) * HASH_MIX : hash);
    if (place->number == 0 && task_name != 0 && lc_the_tracer.works_known >= LC_CALLS_WORKS / 2u) {
        task_name = 0;
        place = place_of(hash);
    }
    if (place->number != 0) {
        return place->number;
    }
    const uint32_t number = lc_the_tracer.works_known < LC_CALLS_WORKS - 2u ? new_number(kind, task_name) : 0;
    if (number == 0) {
        return LC_CALLS_WORK_OTHER; /* until there is room again */
    }
    *place = (lc_traced_work){task_name != 0 ? hash ^ hash_of(task_name) * HASH_MIX : hash, number};
    lc_the_tracer.works_known++;
    return number;
}

static uint32_t number_of_work(uint64_t work, PyObject *code)
{
    const lc_cpython_source *source = &lc_the_agent.source;
    const lc_asyncio_facts *asyncio = &source->asyncio;
    const void *what = lc_is_called_work(work) ? called_task(asyncio, work) : lc_callable_of(source, work);
    const void *task = is_task(asyncio, what) ? what : lc_task_of(source, what);
    lc_work_kind kind = {0};
    if (task != NULL) {
        uint64_t coroutine;
        memcpy(&coroutine, (const char *)task + asyncio->task_coroutine, sizeof coroutine);
        kind = lc_work_kind_of_run(source, coroutine);
    } else if (what != NULL) {
        kind = lc_work_kind_of(source, what);
    }
    if (kind.key == 0) { /* named by what it called first */
        kind = (lc_work_kind){(uint64_t)(uintptr_t)((PyCodeObject *)code)->co_qualname, 0};
    }
    return number_of(kind, task != NULL ? name_of_task(asyncio, task) : 0);
}

void lc_note_work(PyObject *code)
{
    const lc_lane *lane = lc_thread_lane_peek();
    const bool is_work = lane != NULL && lc_lane_in_callback(lane);
    const uint32_t number = is_work ? number_of_work(LC_LOAD(lane->work), code) : LC_CALLS_WORK_NONE;
    lc_traced_own.noted = lc_running_piece(lane);
    lc_calls_begin_work(lc_traced_own.calls, number);
}
