/* The watched program's line to its keeper: core/keeper/courier.h. */
#pragma once

#include <Python.h>

/* Adds the functions; what each does is said in its docstring. All take the GIL as held; those that wait
 * let go of it. -1 with an exception. */
int lc_keeper_line_add(PyObject *module);
