/* The frame source for CPython 3.11 to 3.15: reads frames, the GIL and names of asyncio work out of
 * the running interpreter's memory, from a thread that never takes the GIL.
 *
 *   native/core/watchdog/frame_source.h  what it offers to the watchdog
 *   layout.h                    where each CPython version keeps what it reads
 *   docs/internals/walker.md  why what it reads can be trusted
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cpython/walker/code_deaths.h"
#include "core/watchdog/frame_source.h"
#include "cpython/layouts/layout.h"
#include "core/memory/memory_reader.h"

/* Addresses that objects are recognised by. */
typedef struct {
    uint64_t runtime; /* _PyRuntime */
    uint64_t interp;  /* interpreter that the source was opened in */
    uint64_t code_type;
    uint64_t str_type;
    uint64_t bytes_type;
    uint64_t int_type;
    uint64_t function_type;
    uint64_t method_type;
    uint64_t cfunction_type;
    uint64_t coroutine_type;
    uint64_t generator_type;
    uint64_t tuple_type;
    uint64_t list_type;
    uint64_t dict_type;
} lc_interpreter_addresses;

/* What lc_cpython_source_learn_asyncio found out; read only after `learned` (acquire). */
typedef struct {
    _Atomic bool learned;
    uint64_t handle_type;
    uint32_t handle_callback; /* offset of Handle._callback */
    uint64_t step_type;       /* TaskStepMethWrapper, 0 unknown */
    uint32_t step_task;
    uint64_t task_type; /* _asyncio.Task, 0 where asyncio runs without its accelerator */
    uint32_t task_coroutine;
    uint32_t task_name;
    uint64_t current_tasks; /* before 3.14: the dict of them, 0 unknown */
    /* from 3.14: of a thread state's word for it, 0 unknown; the next word is its task */
    uint32_t running_loop;
    uint64_t partial_type;
    uint32_t partial_function;
} lc_asyncio_facts;

/* What lc_cpython_source_learn_trio found out; read only after `learned` (acquire). */
typedef struct {
    _Atomic bool learned;
    uint64_t task_type; /* trio.lowlevel.Task */
    uint32_t task_coroutine;
    uint32_t task_name;
} lc_trio_facts;

/* What lc_locks_learn found out. */
enum { LC_TYPE_LOCK, LC_TYPE_RLOCK, LC_TYPE_HANDLE, LC_TYPE_REFERENCE, LC_TYPE_SEMLOCK, LC_LOCK_TYPES };

typedef struct {
    bool learned; /* under the GIL, before the watchdog runs */
    /* _thread.lock, RLock, _ThreadHandle (3.13+, else 0), weakref.ref; SemLock once one was seen, by the
     * watchdog's thread */
    uint64_t types[LC_LOCK_TYPES];
    uint64_t exit_descriptors[LC_TYPE_HANDLE]; /* __exit__ of locks and RLocks: the method descriptor... */
    uint64_t exit_definitions[LC_TYPE_HANDLE]; /* ...and the PyMethodDef that bound methods refer to */
    uint64_t descriptor_type;
    uint64_t manager_type; /* contextlib's, once one was seen; by the watchdog's thread */
} lc_lock_facts;

/* What the walker did, for statistics and tests. Stored by the watchdog's thread, relaxed. */
typedef struct {
    _Atomic uint64_t walks;
    _Atomic uint64_t still;     /* proven by the thread's CPU clock: it did not run meanwhile */
    _Atomic uint64_t unmoved;   /* of these, not even read: it had not run since the walk before */
    _Atomic uint64_t agreed;    /* proven by reads that agree */
    _Atomic uint64_t shortened; /* only the outer frames agreed: the inner ones moved at every try */
    _Atomic uint64_t retries;
    _Atomic uint64_t codes_loaded;
    _Atomic uint64_t codes_trusted; /* known without a look at them, since none had died there */
} lc_walk_counts;

/* Working memory of the watchdog's thread. */
typedef struct lc_walker lc_walker;
typedef struct lc_task_look lc_task_look;

typedef struct lc_cpython_source {
    lc_frame_source source; /* first: the seam's functions are given its address */
    const lc_memory_reader *reader;
    lc_code_deaths *deaths; /* of this process's code objects; NULL: not counted, set before the first walk */
    lc_layout layout;
    lc_interpreter_addresses at;
    lc_asyncio_facts asyncio;
    lc_trio_facts trio;
    lc_lock_facts locks;
    lc_walk_counts counts;
    lc_walker *walker;
    lc_task_look *look;
} lc_cpython_source;

/* Opens the source for the interpreter of the calling thread.
 *
 * Thread: any with a thread state; GIL held. Allocates (mmap, about 12 MiB of address space of which
 * only used pages become resident). The reader must outlive the source. Relies on the layout of
 * Include/internal of the running version, checked as layout.h says.
 * Returns false where this CPython cannot be read (unknown version, free-threaded or otherwise
 * different build); *why_not then is one line for people, with static lifetime, and nothing needs to
 * be closed. No Python exception is left set. */
bool lc_cpython_source_open(lc_cpython_source *source, const lc_memory_reader *reader, const char **why_not);

/* Frees the memory. Only after the last thread that used the source is done with it, but for `name_ended`,
 * which needs none of it and may go on. GIL not needed. */
void lc_cpython_source_close(lc_cpython_source *source);

/* Learns where asyncio keeps callbacks, tasks and names, by the public types and by looking for known
 * objects inside a throwaway task; until then the source's `work` answers empty texts.
 *
 * Thread: any; GIL held; asyncio.events already imported (it is not imported here: false). Runs a
 * little Python. Idempotent. May be called while the watchdog uses the source. Returns whether
 * callbacks can be named; parts that could not be learned stay unnamed. No exception is left set. */
bool lc_cpython_source_learn_asyncio(lc_cpython_source *source);

/* Learns where trio keeps a task's coroutine and its name, which its member descriptors tell: `task_type` is
 * trio.lowlevel.Task, a PyTypeObject. GIL held. Idempotent; false where it is no such type. No exception
 * is left set. */
bool lc_cpython_source_learn_trio(lc_cpython_source *source, void *task_type);

/* Words inside a task of trio's, whose type is `type`; 0: not one. Pure. */
static inline bool lc_is_trio_task(const lc_cpython_source *source, uint64_t type)
{
    return type != 0 && atomic_load_explicit(&source->trio.learned, memory_order_acquire) &&
           type == source->trio.task_type;
}

/* The same source without an interpreter: for tests and fuzz targets, which script the reader. */
bool lc_cpython_source_init(lc_cpython_source *source, const lc_memory_reader *reader,
                            const lc_layout *layout, const lc_interpreter_addresses *at);

/* ---- self_test.c: whether what the source reads is what the interpreter says ------------------------- */

/* Walks the calling thread and reads objects of known value. GIL held; runs a few lines of Python. False, with a reason of static
 * lifetime, if anything differs from the public API's answer. */
bool lc_self_test(lc_cpython_source *source, const char **why_not);
