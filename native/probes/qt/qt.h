/* Qt's loops as callbacks see them. */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "module/thread_lane.h"
#include "probes/hooks/wait_hook.h"

/* ---- library.c ---------------------------------------------------------------------------------------------
 * Qt as it is loaded in this process: the few functions and places of QtCore that are needed, found by
 * their symbols. */

/* Names are those of the Itanium C++ ABI, which Qt 5 and 6 have in common. `this` of a method is its first
 * argument. */
typedef struct {
    size_t notify_index;         /* of QCoreApplication::notify(QObject *, QEvent *) in the virtual table */
    size_t process_events_index; /* of QAbstractEventDispatcher::processEvents(flags) in its */
    size_t event_type_offset;    /* of the 16 bits of a QEvent's type; 0: not known */
    void **application;          /* QCoreApplication::self */
    void *(*application_dispatcher)(void);
    void *(*thread_dispatcher)(void *thread); /* NULL: of the calling thread */
    void (*add_pre_routine)(void (*routine)(void));
} lc_qt_library;

/* Looks in the loaded object of this path (a binding's QtCore module) and in what it is linked with. False
 * with the reason where something is missing or not what it must be; nothing is changed in any case. */
bool lc_qt_library_find(const char *path, lc_qt_library *out, const char **why_not);

/* ---- trace.c -----------------------------------------------------------------------------------------------
 * Reports single events of Qt's to Python: drawing and input. One call each, after the event; all other
 * events cost nothing here. */

/* An event that the application delivers. */
typedef struct {
    uint64_t work;          /* the lane's word (work_words.h) */
    uint64_t receiver;      /* of the event itself, whatever it is passed on to */
    uint64_t begin_ns;      /* 0: no listener wants this event */
    uint64_t asked_ns;      /* of a drawing: since when the loop had no time to draw; 0: not known */
    uint64_t stamp;         /* of an input event, in milliseconds of its platform's clock */
    const char *class_name; /* the receiver's, mangled, where a listener wants it; else NULL */
    uint32_t painted;       /* widgets, while it was handled */
    uint16_t type;
    bool titled; /* a window came to the front or got another title, while it was handled */
} lc_qt_delivery;

/* A timer that is due again whenever it has run, so that the loop never waits: a zero timer. */
typedef struct {
    uint64_t work; /* 0: none */
    uint64_t begin_ns;
    uint64_t end_ns; /* of its last run */
    uint64_t runs;
    uint64_t gaps; /* between runs, since it was told last */
    uint64_t gaps_ns;
    uint64_t told_at_ns; /* how long it has to be to be told */
    uint64_t receiver;
    const char *class_name;
} lc_qt_spin;

/* The calling thread; without the GIL. */
lc_qt_delivery lc_qt_delivery_begin(const void *receiver, const void *event, uint16_t type);
/* Another event is delivered while this one is handled. Whether it says better what is done, as an input
 * event's real receiver does; `work` is then of this. */
bool lc_qt_delivery_passes_on(lc_qt_delivery *delivery, const void *receiver, uint16_t type);
/* Whether a listener wants to know since when a window waits to be drawn. */
bool lc_qt_delivery_draws(const lc_qt_delivery *delivery);
/* Calls Python, with the GIL, if a listener wants it. */
void lc_qt_delivery_end(const lc_qt_delivery *delivery, lc_qt_spin *spin);

/* The mangled name of the object's C++ class; NULL: it was compiled without. It outlives the object. */
const char *lc_qt_class_of(const void *object);

/* qt_listen(function | None): function(type, class, receiver, begin_ns, end_ns, number, asked_ns) hears of
 * each input event (`number`: its time stamp, milliseconds), of each event in which a window may be drawn
 * (widgets painted), of a timer that spins, while it does and when it is over, or where a run took long (its
 * runs), and, with the type 33, that another window is in front or has another title. It raises nothing. */
PyObject *lc_qt_listen(PyObject *module, PyObject *function);

/* ---- thread.c ----------------------------------------------------------------------------------------------
 * What is known of a thread that runs Qt's loop, and the way to its lane. The calling thread's own,
 * without the GIL. */

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
    bool hid; /* a window was hidden since the innermost iteration began */
} lc_qt_thread;

/* Before all others, once. False: no thread-specific memory is left. */
bool lc_qt_threads_prepare(void);
/* `loop_seen` is called when a thread gets its lane; NULL: threads get none. GIL held. */
void lc_qt_threads_seen_by(PyObject *loop_seen);

/* NULL: no memory. */
lc_qt_thread *lc_qt_thread_get(void);

bool lc_qt_thread_is_known(const lc_qt_thread *thread);
/* At the begin of an iteration of a patched dispatcher: the thread is watched, and gets its lane if it may
 * call Python. */
void lc_qt_thread_know(lc_qt_thread *thread);
void lc_qt_thread_pass_by(lc_qt_thread *thread);

/* The thread's lane, to be stored to until lc_storing_end. NULL: it is not watched, or its engine has
 * stopped; lc_storing_end must not be called then. */
lc_lane *lc_qt_thread_begin_storing(const lc_qt_thread *thread);

/* ---- loop.c ------------------------------------------------------------------------------------------------
 * Qt's loops: each iteration of a thread's event dispatcher, and each event that the application delivers in
 * it.
 *
 * Two virtual functions are replaced (probes/qt/patch.h): QCoreApplication::notify, through which every event
 * goes to its receiver, and QAbstractEventDispatcher::processEvents, of which every loop is made: exec(),
 * modal dialogs, menus, drags, processEvents(). An iteration is a turn, or two with the wait between them
 * (wait_hook.h). An event is a callback; events that are sent while it is handled are a part of it. Where an
 * iteration runs inside a callback, the callback is judged up to there, and goes on afterwards as one of the
 * same name.
 *
 * Watched are the application's own thread, and threads whose loop Python code runs. A QThread whose loop Qt
 * runs, with objects moved to it, is where programs put work that takes long: it is not watched.
 *
 * It runs without the GIL, which is taken once for each thread and engine, to get the lane.
 */

/* Calls of Python; all under the GIL.
 *
 * qt_install(path, loop_seen) -> None | str: `path` of a binding's QtCore module, `loop_seen` is called
 * when a thread gets its lane, and raises nothing. Covers applications that are made later. A str: why it
 * cannot be done. Idempotent. qt_uninstall(): takes back what is still ours. */
PyObject *lc_qt_install(PyObject *module, PyObject *args);
PyObject *lc_qt_uninstall(PyObject *module, PyObject *unused);
