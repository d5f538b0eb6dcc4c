/* Names of trio's work: a step of a trio.lowlevel.Task is a run of the task's coroutine. */
#ifndef LOOPCANARY_WORK_TRIO_H
#define LOOPCANARY_WORK_TRIO_H

#include "cpython/source/cpython_source.h"

/* Learns where trio keeps a task's coroutine and its name, which its member descriptors tell: `task_type` is
 * trio.lowlevel.Task, a PyTypeObject. GIL held. Idempotent; false where it is no such type. No exception is left set. */
bool lc_cpython_source_learn_trio(lc_cpython_source *source, void *task_type);

/* Words inside a task of trio's, whose type is `type`; 0: not one. Pure. */
static inline bool lc_is_trio_task(const lc_cpython_source *source, uint64_t type)
{
    return type != 0 && atomic_load_explicit(&source->trio.learned, memory_order_acquire) &&
           type == source->trio.task_type;
}

#endif
