/* Reports single events of Qt's to Python: drawing and input. One call each, after the event; all other events cost
 * nothing here. */
#ifndef LOOPCANARY_QT_TRACE_H
#define LOOPCANARY_QT_TRACE_H

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

/* An event that the application delivers. */
typedef struct {
    uint64_t work;          /* the lane's word (work_qt.h) */
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
    uint64_t gaps_ns; /* between runs */
} lc_qt_spin;

/* The calling thread; without the GIL. */
lc_qt_delivery lc_qt_delivery_begin(const void *receiver, const void *event, uint16_t type);
/* Another event is delivered while this one is handled. Whether it says better what is done, as an input event's real receiver
 * does; `work` is then of this. */
bool lc_qt_delivery_passes_on(lc_qt_delivery *delivery, const void *receiver, uint16_t type);
/* Whether a listener wants to know since when a window waits to be drawn. */
bool lc_qt_delivery_draws(const lc_qt_delivery *delivery);
/* Calls Python, with the GIL, if a listener wants it. */
void lc_qt_delivery_end(const lc_qt_delivery *delivery, lc_qt_spin *spin);

/* The mangled name of the object's C++ class; NULL: it was compiled without. It outlives the object. */
const char *lc_qt_class_of(const void *object);

/* qt_listen(function | None): function(type, class, receiver, begin_ns, end_ns, number, asked_ns) hears of each input
 * event (`number`: its time stamp, milliseconds), of each event in which a window may be drawn (widgets painted), of
 * a timer that spins, once a second of it or where a run took long (its runs), and, with the type 33, that another window
 * is in front or has another title. It raises nothing. */
PyObject *lc_qt_listen(PyObject *module, PyObject *function);

#endif
