/* GLib's waits: the poll function of a main context (g_main_context_set_poll_func) is ours, and calls the one before.
 *
 * Only the contexts that are asked for are hooked: what other code of the program polls inside a callback blocks it.
 * The function runs without the GIL (PyGObject lets go of it for the loop's run); loop_hooks.h says whose the turns are.
 * GLib is found where it is loaded: nothing of ours is linked to it.
 */
#ifndef LOOPCANARY_GLIB_CONTEXT_H
#define LOOPCANARY_GLIB_CONTEXT_H

#include <Python.h>
#include <stdbool.h>

/* glib_hook() -> bool: hooks the default context; False where GLib is not loaded or hides its functions. Idempotent. */
PyObject *lc_glib_hook(PyObject *module, PyObject *unused);

/* glib_unhook(): every context has its own poll function again, unless other code has put one over ours. */
PyObject *lc_glib_unhook(PyObject *module, PyObject *unused);

/* Hooks the context of a GMainLoop. GIL held. */
void lc_glib_hook_loop(void *main_loop);

#endif
