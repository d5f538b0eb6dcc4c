/* What is told to Python of single events that Qt delivers: drawing and input. One call each, after the event; all other events
 * cost nothing here. */
#ifndef LOOPCANARY_QT_TRACE_H
#define LOOPCANARY_QT_TRACE_H

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

/* An event that the application delivers. */
typedef struct {
    uint64_t work;     /* what a lane keeps of it (work_qt.h) */
    uint64_t begin_ns; /* 0: nobody wants to hear of it */
    uint64_t stamp;    /* of an input event, in milliseconds of its platform's clock */
    uint32_t painted;  /* widgets, while it was handled */
    uint16_t type;
} lc_qt_delivery;

/* The calling thread; without the GIL. */
lc_qt_delivery lc_qt_delivery_begin(const void *receiver, const void *event, uint16_t type);
/* Another event is delivered while this one is handled. Whether it says better what is done, as an input event's real receiver
 * does; `work` is then of this. */
bool lc_qt_delivery_passes_on(lc_qt_delivery *delivery, const void *receiver, uint16_t type);
/* Calls Python, with the GIL, if somebody wants to hear of it. */
void lc_qt_delivery_end(const lc_qt_delivery *delivery);

/* Whether Python may be called on this thread: it has a thread state, and the interpreter is not about to end. */
bool lc_qt_may_call_python(void);
/* An exception of the program's own came up where nobody can take it: an interrupt is asked for anew, others are reported as
 * Python reports what nobody takes. GIL held, exception set. */
void lc_qt_pass_on_exception(void);

/* qt_listen(function | None): function(type, receiver, begin_ns, end_ns, stamp, painted) hears of each input event, and of
 * each event in which a window is drawn. It raises nothing. */
PyObject *lc_qt_listen(PyObject *module, PyObject *function);

#endif
