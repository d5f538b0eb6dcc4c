/* Names of the work that a loop runs. */
#pragma once

#include "cpython/source/cpython_source.h"

/* lc_frame_source.work, .text and .kind_name. Watchdog's thread; no GIL, lock, allocation. */
void lc_work(lc_cpython_source *source, uint64_t work, uint64_t thread_state, const lc_stack *stack,
             lc_work_names *out);
lc_text lc_text_of(lc_cpython_source *source, uint64_t str_object);
lc_text lc_kind_name(lc_cpython_source *source, lc_work_kind kind);

/* Of lc_work_kind.key: the address of a C string, which `owner`'s name, if any, goes in front of. Without
 * it, of a str. */
#define LC_KIND_C_STRING (UINT64_C(1) << 63)

/* lc_frame_source.name_ended. The thread that ran the work, before it lets go of it; GIL or none. What it
 * reads is read as carefully as by the watchdog, since the work may have let go of its parts: a name is
 * then left out. About ten system calls. */
void lc_work_ended(lc_cpython_source *source, uint64_t work, lc_long_work *entry);

/* What kind of work a callable, or a str that names work, is; {0, 0} where there is no name to be had. Calls
 * of one function, of one task's coroutine function, or of one method of C code are one kind, whatever they
 * are bound to; of other callables, those of one type.
 *
 * GIL held: follows the live objects. No allocation, no reference, no error. What it answers is an address
 * inside the function or type, so that it names something for as long as that lives. */
lc_work_kind lc_work_kind_of(const lc_cpython_source *source, const void *callable);

/* The same of a coroutine, by its name. */
lc_work_kind lc_work_kind_of_run(const lc_cpython_source *source, uint64_t coroutine);

/* What a lane's work word (lc_lane.work) came to run: a callable, a task, a str; NULL: that cannot be told
 * from it. Of the running work of the calling thread; GIL held, as above. */
const void *lc_callable_of(const lc_cpython_source *source, uint64_t work);

/* The name of a kind, into LC_STRING_MAX bytes with a NUL, cut on a character's edge; empty: it has none,
 * or cannot be read. GIL or none, any thread. Some system calls. */
void lc_kind_text(lc_cpython_source *source, lc_work_kind kind, char *into);

/* The task (a _asyncio.Task) whose step or wake-up a callable is; NULL: it is something else. GIL held, as
 * above. */
const void *lc_task_of(const lc_cpython_source *source, const void *callable);
