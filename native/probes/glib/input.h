/* Input of GTK's windows, and which of them is in front. GTK 3 and 4 emit a signal for each event that they handle
 * ("event" of GtkWidget, of GdkSurface), and a signal may have emission hooks (g_signal_add_emission_hook).
 *
 * An event's handling begins with the signal. It ends with the loop's next wait, with the next event, or with the next of
 * the program's sources: GLib dispatches one event at a time, and what is drawn for it has a priority of its own, and so a turn of
 * its own. Keys, buttons, wheel and touch; not motion, which comes by hundreds a second.
 *
 * Hooks are called without the GIL, mostly. GTK is found where it is loaded. */
#ifndef LOOPCANARY_GLIB_INPUT_H
#define LOOPCANARY_GLIB_INPUT_H

#include <Python.h>

/* glib_listen(listener | None, version): of GTK 3 or 4. listener(name, stamp_ms, begin_ns, end_ns, signal, handler) is
 * called when an event has been handled, with the first handler of the program's that it was handed to, or None, None; and
 * listener("", 0, 0, 0, None, None) when another window may be in front. It raises nothing. */
PyObject *lc_glib_listen(PyObject *module, PyObject *args);

/* The calling thread is about to wait, or to call one of the program's sources. Any state of the GIL. Calls Python: what is known of
 * the thread's lane must be asked for again. */
void lc_glib_input_end(void);

/* A handler of a signal is called: a PyGClosure, the signal's name (a str that stays), and what it calls. Any state of the GIL. */
void lc_glib_input_handler(void *closure, PyObject *signal);

/* See PyGClosure in PyGObject's public header pygobject-types.h: the handler comes right behind the GClosure. Borrowed; NULL: none
 * any more. */
PyObject *lc_glib_handler_of(const void *closure);

#endif
