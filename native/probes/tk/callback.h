/* tkinter.CallWrapper.__call__ in C: what the original does, and the command's bracket around it. */
#ifndef LOOPCANARY_TK_CALLBACK_H
#define LOOPCANARY_TK_CALLBACK_H

#include <Python.h>

/* tk_callback(original, site, globals, after, seen, input, partial, event) -> PatchedFunction
 *
 * `site`: (code, (offset, line) of the call of `func`, the same of `subst` and of the report), of the pristine original,
 * which is then not called but done in C; None where it has been replaced: that is called. `globals`: tkinter's. `after`:
 * (code of the function that Misc.after registers, index of the program's function in its closure) or None. `seen()`: a
 * thread is first seen under an engine. `input((path, type, button, time_ms), begin_ns, end_ns)`: a user's event was
 * handled; or None. `partial`: functools.partial. `event`: (count, and places of button, time and type) of Tcl's arguments
 * about an event. */
PyObject *lc_tk_callback(PyObject *module, PyObject *args);

/* tk_idle(function, ran) -> PatchedFunction that calls `function`, then ran(function, begin_ns, end_ns): what is handed to
 * after_idle in the program's function's place. */
PyObject *lc_tk_idle(PyObject *module, PyObject *args);

#endif
