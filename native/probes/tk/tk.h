/* What Tcl and Tk do on a thread that runs them, where Python may not be called.
 *
 * Waits: an event source of Tcl's says when Tcl is about to wait, and when it has waited.
 * Tcl_CreateEventSource(3tcl): the setup procedures of all sources run before each wait, their check
 * procedures after it, also where Tcl does not block (update()). They run without the GIL: a source in Python
 * would have to get the GIL twice a turn. loop_hooks.h says whose the turns are.
 *
 * Frames: Tk draws when Tcl is idle, without a sign: the calls by which libtk puts something on the screen are
 * hooked in its table of imported functions (got.h), and those that go to a window are a drawing. A frame is
 * all that is drawn between two waits of Tcl's, or by one update_idletasks(); of all windows of the thread
 * together.
 *
 * Events: a generic handler sees each event of X before Tk's bindings do: what the user does to a button comes
 * to Python only as a call of its command.
 *
 * All of it is kept until a place where Python may be called: the begin of a command, the end of update().
 * Tcl is found in what _tkinter is linked to: nothing of ours is.
 */
#pragma once

#include <Python.h>

/* Calls of Python; all under the GIL, and but for tk_learn about the calling thread.
 *
 * tk_learn(path of the extension module _tkinter | None) -> (waits, frames): what can be seen from now on.
 * None: _tkinter is part of the program itself. */
PyObject *lc_tk_learn(PyObject *module, PyObject *path);
/* tk_end(): nothing is drawn that is seen, and the thread's waits and events are not seen any more; those of
 * other threads mean nothing where no engine runs. */
PyObject *lc_tk_end(PyObject *module, PyObject *unused);
/* tk_shown(in_command) -> (is_new, look, ((waited_ns, asked_ns, drawn_ns), ...)) | None: the thread runs Tcl,
 * and what is kept of it, if there is anything. `is_new`: it is seen for the first time under this engine;
 * `look`: the focus may be another. `in_command`: a command begins. */
PyObject *lc_tk_shown(PyObject *module, PyObject *in_command);
/* tk_updated(): the program has had everything drawn, by update() or update_idletasks(). */
PyObject *lc_tk_updated(PyObject *module, PyObject *unused);
/* tk_input() -> (X's type, button, time in ms) | None: the user's event that is served; once. */
PyObject *lc_tk_input(PyObject *module, PyObject *unused);
