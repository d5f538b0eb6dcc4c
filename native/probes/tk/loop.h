/* The functions by which programs run Tcl's loop: mainloop(), update(), wait_window() and the like. */
#ifndef LOOPCANARY_TK_LOOP_H
#define LOOPCANARY_TK_LOOP_H

#include <Python.h>

/* tk_loop(original, role, seen) -> PatchedFunction. `role`:
 *   "run"     the loop runs until the function returns; the thread is Tcl's
 *   "nested"  the same, on a thread that has run Tcl before: others only ask Tcl's thread to do it
 *   "update"  the same, and a loop that the program turns by hand
 *   "gone"    the loop is about to end: what was adopted or turned by hand is no loop any more
 *   "draw"    no loop: what is to be drawn is drawn
 * `seen()` is called when a thread is first seen under an engine. */
PyObject *lc_tk_loop(PyObject *module, PyObject *args);

/* tk_adopt(): the calling thread is inside a mainloop() that was not patched when it began: its waits are seen from
 * now on. Idempotent. */
PyObject *lc_tk_adopt(PyObject *module, PyObject *unused);

/* tk_release(): what was adopted on the calling thread is given up, and its event source. */
PyObject *lc_tk_release(PyObject *module, PyObject *unused);

#endif
