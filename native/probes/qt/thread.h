/* What is known of a thread that runs Qt's loop, and the way to its lane. The calling thread's own, without the GIL. */
#ifndef LOOPCANARY_QT_THREAD_H
#define LOOPCANARY_QT_THREAD_H

#include "module/thread_lane.h"
#include "probes/hooks/wait_hook.h"
#include "probes/qt/trace.h"

typedef struct {
    bool asked;
    uint64_t asked_generation; /* of the agent: for it the two answers below hold */
    lc_wait run;               /* the thread's lane, NULL where it is not watched */
    uint32_t loops;            /* iterations that are under way, each inside the one before */
    uint32_t deliveries;       /* under way in the innermost iteration, each inside the one before */
    uint64_t epoch;            /* of the lane's callback that the outermost of these is; 0: it is none */
    lc_qt_delivery delivery;   /* that one */
    uint64_t busy_begin;       /* ticks: of the last long turns, one soon after the other */
    uint64_t busy_end;
    lc_qt_spin spin;
} lc_qt_thread;

/* Before all others, once. False: no thread-specific memory is left. */
bool lc_qt_threads_prepare(void);
/* `loop_seen` is called when a thread gets its lane; NULL: threads get none. GIL held. */
void lc_qt_threads_seen_by(PyObject *loop_seen);

/* NULL: no memory. */
lc_qt_thread *lc_qt_thread_get(void);

/* Whether it is known if this thread is watched by the agent that runs. */
bool lc_qt_thread_is_known(const lc_qt_thread *thread);
/* At the begin of an iteration of a dispatcher that is ours: it is watched, and gets its lane, where it may call Python. */
void lc_qt_thread_know(lc_qt_thread *thread);
/* It is not watched, as far as is known. */
void lc_qt_thread_pass_by(lc_qt_thread *thread);

/* Its lane, until lc_storing_end. NULL: not watched, or by an engine that is no more; nothing is to be ended then. */
lc_lane *lc_qt_thread_begin_storing(const lc_qt_thread *thread);

#endif
