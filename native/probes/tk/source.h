/* Tk's waits: an event source of Tcl's says when Tcl is about to wait, and when it has waited.
 *
 * Tcl_CreateEventSource(3tcl): the setup procedures of all sources run before each wait, their check procedures after
 * it, also where Tcl does not block (update()). They run on Tcl's thread without the GIL; loop_hooks.h says whose the
 * turns are. Tcl is found in what _tkinter is linked to: nothing of ours is.
 */
#ifndef LOOPCANARY_TK_SOURCE_H
#define LOOPCANARY_TK_SOURCE_H

#include <Python.h>
#include <stdbool.h>

/* tk_learn(path of the extension module _tkinter | None) -> bool: whether Tcl's functions were found. Without them turns
 * are not seen, callbacks are. None: _tkinter is part of the program itself. */
PyObject *lc_tk_learn(PyObject *module, PyObject *path);

/* Sees to it that the calling thread's waits in Tcl are seen; of a thread that runs Tcl. Idempotent, cheap. GIL held. */
void lc_tk_source_open(void);
/* Takes the calling thread's source away; those of other threads stay, and do nothing where no engine runs. */
void lc_tk_source_close(void);

#endif
