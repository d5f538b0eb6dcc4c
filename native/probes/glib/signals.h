/* Handlers of signals, as callbacks: GObject calls them with nothing of Python's around that could be replaced without the
 * program noticing (disconnect_by_func compares functions), but a closure may have guards, which GObject calls before and after
 * (g_closure_add_marshal_guards). PyGObject hands each closure that it makes for `connect` to one function of GObject's, whose
 * entry in the table of its extension is hooked (native/core/got/got.h).
 *
 * Guards are called without the GIL, mostly, on the thread that emits. Guards stay with their closures; they do nothing on
 * threads that run no loop. */
#ifndef LOOPCANARY_GLIB_SIGNALS_H
#define LOOPCANARY_GLIB_SIGNALS_H

#include <Python.h>

/* glib_hook_signals(path) -> bool: from now on, handlers that are connected are seen; `path` is that of PyGObject's extension.
 * False where its table cannot be written. Counts: as many glib_unhook_signals(path) undo it. */
PyObject *lc_glib_hook_signals(PyObject *module, PyObject *path);
PyObject *lc_glib_unhook_signals(PyObject *module, PyObject *path);

#endif
