/* GLib's loops as callbacks see them. GLib, GObject and GTK are found where they are loaded: nothing of ours is
 * linked to them. */
#pragma once

#include <Python.h>

/* ---- loop.c: runs, waits and sources --------------------------------------------------------------------
 * A wait is seen by the poll function of a main context (g_main_context_set_poll_func), which is ours and
 * calls the one before. Only the contexts that are asked for are hooked: what other code of the program polls inside a callback
 * blocks it. The function runs without the GIL (PyGObject lets go of it for the loop's run); loop_hooks.h
 * says whose the turns are. */

/* glib_hook() -> bool: hooks the default context; False where GLib is not loaded or hides its functions.
 * Idempotent. */
PyObject *lc_glib_hook(PyObject *module, PyObject *unused);

/* glib_unhook(): every context has its own poll function again, unless other code has put one over ours. */
PyObject *lc_glib_unhook(PyObject *module, PyObject *unused);

/* glib_run(original, seen, boxed_type | None, is_context) -> PatchedFunction around what runs the loop until
 * it returns: a method of objects of `boxed_type` (gi's type of boxed values; of a GMainContext or a
 * GMainLoop) or anything else. `seen()` is called at each run's begin, and raises nothing. */
PyObject *lc_glib_run(PyObject *module, PyObject *args);

/* glib_source(function, way, ran | None, partial) -> PatchedFunction: what is handed to GLib in the place
 * of the program's function, of a source of the kind `way`, "timeout" or "idle". Then ran(function,
 * begin_ns, end_ns) is called. */
PyObject *lc_glib_source(PyObject *module, PyObject *args);

/* ---- signals.c: handlers of signals, as callbacks ---------------------------------------------------------
 * GObject calls them with nothing of Python's around that could be
 * replaced without the program noticing (disconnect_by_func compares functions), but a closure may have
 * guards, which GObject calls before and after (g_closure_add_marshal_guards). PyGObject hands each closure
 * that it makes for `connect` to one function of GObject's, whose entry in the table of its extension is
 * hooked (native/core/got/got.h).
 *
 * Guards are called without the GIL, mostly, on the thread that emits. Guards stay with their closures;
 * they do nothing on threads that run no loop. */

/* glib_hook_signals(path) -> bool: from now on, handlers that are connected are seen; `path` is that of
 * PyGObject's extension. False where its table cannot be written. Counts: as many
 * glib_unhook_signals(path) undo it. */
PyObject *lc_glib_hook_signals(PyObject *module, PyObject *path);
PyObject *lc_glib_unhook_signals(PyObject *module, PyObject *path);

/* ---- input.c: input of GTK's windows, and which of them is in front ----------------------------------------
 * GTK 3 and 4 emit a signal for each event that they
 * handle ("event" of GtkWidget, of GdkSurface), and a signal may have emission hooks
 * (g_signal_add_emission_hook).
 *
 * An event's handling begins with the signal. It ends with the loop's next wait, with the next event, or with
 * the next of the program's sources: GLib dispatches one event at a time, and what is drawn for it has a
 * priority of its own, and so a turn of its own. Keys, buttons, wheel and touch; not motion, which comes by
 * hundreds a second.
 *
 * Hooks are called without the GIL, mostly. */

/* glib_listen(listener | None, version): of GTK 3 or 4. listener(name, stamp_ms, begin_ns, end_ns, signal,
 * handler) is called when an event has been handled, with the first handler of the program's that it was
 * handed to, or None, None; and listener("", 0, 0, 0, None, None) when another window may be in front. It
 * raises nothing. */
PyObject *lc_glib_listen(PyObject *module, PyObject *args);

/* The calling thread is about to wait, or to call one of the program's sources. Any state of the GIL.
 * Calls Python: what is known of the thread's lane must be asked for again. */
void lc_glib_input_end(void);

/* A handler of a signal is called: a PyGClosure, the signal's name (a str that stays), and what it calls.
 * Any state of the GIL. */
void lc_glib_input_handler(void *closure, PyObject *signal);

/* See PyGClosure in PyGObject's public header pygobject-types.h: the handler comes right behind the
 * GClosure. Borrowed; NULL: none any more. */
PyObject *lc_glib_handler_of(const void *closure);
