/* Tasks of asyncio, in this process or another: which there are, and what each of them awaits.
 *
 * asyncio's C structures are private and have changed in patch releases, so they are in no table. Every
 * release has a task's coroutine between the future that it waits for and its name; which words these are
 * is found in the first task that is seen. From 3.14 on the module describes itself (`Py_AsyncioModuleDebugOffsets`,
 * Modules/_asynciomodule.c), for tools like this one.
 *
 * All is read once, of a program that runs on: two readings that agree are the caller's to make. No GIL, lock or
 * allocation. */
#pragma once

#include "cpython/gil/threads.h"
#include "cpython/source/cpython_source.h"
#include "cpython/walker/linetable.h"

#define LC_TASKS_MAX 100000u
#define LC_JUNK_MAX 100000u
#define LC_AWAITS_MAX 256u
#define LC_HELD_MAX 16u
#define LC_LOCK_EXIT "_ContextManagerMixin.__aexit__" /* of asyncio's locks, semaphores and conditions */

/* Where this asyncio has its tasks. */
typedef struct {
    uint64_t type;    /* _asyncio.Task; 0: asyncio is not loaded, or has no C tasks */
    uint64_t future;  /* _asyncio.Future, its base */
    bool loaded;      /* asyncio.tasks is */
    uint64_t sets[2]; /* of weak references to tasks; of tasks. 0: there is none */
    uint32_t
        coroutine; /* in a task; 0 until one was seen. The word before it is the future, the one behind it the name */
    uint32_t node;        /* from 3.14 on: the task's place in a list of tasks; 0: there are no lists */
    uint32_t interp_head; /* heads of such lists, in the interpreter and in a thread's state */
    uint32_t thread_head;
} lc_tasks;

typedef struct {
    uint64_t key, value;
} lc_pair;

/* Sorts by the keys, in place. */
void lc_pairs_sort(lc_pair *all, uint32_t count);

/* Looks for asyncio in this interpreter. `out`: zeros, or what was found before, of which it keeps what still
 * holds. */
void lc_tasks_find(lc_cpython_source *source, uint64_t interp, lc_tasks *out);

/* Whether this interpreter has imported the module. */
bool lc_module_loaded(const lc_cpython_source *source, uint64_t interp, const char *name);

/* Whether it is an instance of the type, or of one that derives from it. */
bool lc_is_instance(const lc_cpython_source *source, uint64_t object, uint64_t type);

/* The tasks, as keys, each once, sorted by address, at most `room`. After LC_JUNK_MAX objects that are no tasks it
 * stops: the memory is no asyncio's. *others counts objects that are no tasks of asyncio's C code. */
uint32_t lc_tasks_list(const lc_cpython_source *source, const lc_tasks *tasks, uint64_t interp,
                       const lc_thread_ref *threads, uint32_t thread_count, lc_pair *out, uint32_t room,
                       uint32_t *others);

/* Finds where a task has its coroutine, in the first of these that has one. Not needed where asyncio says it. */
void lc_tasks_learn(const lc_cpython_source *source, lc_tasks *tasks, const lc_pair *all, uint32_t count);

/* ---- awaits.c: what a task awaits ------------------------------------------------------------------- */

typedef enum {
    LC_TASK_UNREADABLE = 0, /* it moved, or is no task */
    LC_TASK_BEGINS = 1,     /* its coroutine has not begun */
    LC_TASK_SUSPENDED = 2,
    LC_TASK_RUNS = 3,
    LC_TASK_ENDED = 4
} lc_task_state;

/* An object that the frame's `with` or `async with` will leave, and the function that it will call for that: a str's
 * address; 0: it is the lock of the condition before it. */
typedef struct {
    uint64_t object;
    uint64_t function;
} lc_held;

typedef struct {
    uint64_t code;
    uint64_t instr;
    uint64_t first; /* the first argument: `self` of a method; 0: there is none */
    uint32_t held_count;
    lc_held held[LC_HELD_MAX];
} lc_await;

typedef struct {
    lc_task_state state;
    bool cut; /* it awaits more than is read, or in a circle */
    uint64_t loop;
    uint64_t callback; /* the first of those that are called when the task ends; 0: none */
    uint64_t future;   /* that it waits for; 0: none, or one that is done: it will run */
    uint64_t name;     /* str, or int of `Task-1` */
    uint64_t end;      /* what the innermost frame awaits, no frame of Python itself; 0: nothing */
    uint32_t count;
    lc_await awaits[LC_AWAITS_MAX]; /* outermost first */
} lc_task;

/* Reads the first `most` awaits, of 1 to LC_AWAITS_MAX. */
void lc_task_read(lc_cpython_source *source, const lc_tasks *tasks, uint64_t task, uint32_t most,
                  lc_task *out);

/* The first callback of a future of asyncio's C code, and the function behind a callback, function or method; 0: none. */
uint64_t lc_future_callback(const lc_cpython_source *source, uint64_t future);
uint64_t lc_callback_name(const lc_cpython_source *source, uint64_t callback);

/* An instruction's place in the program's text. */
typedef struct {
    uint32_t file_length, qualname_length;
    uint32_t first_line, flags; /* of the code object */
    lc_position position;
    char file[LC_STRING_MAX];
    char qualname[LC_STRING_MAX];
} lc_place;

bool lc_place_read(lc_cpython_source *source, uint64_t code, uint64_t instr, lc_place *out);
