#ifndef LOOPCANARY_C_CODE_H
#define LOOPCANARY_C_CODE_H

#include <Python.h>

/* c_code(function) -> int: where the code of a built-in function, or of a method of a C type, begins. It lies in the
 * object that hook_waits is to be told, also where that is the interpreter itself. 0: not written in C. */
PyObject *lc_c_code(PyObject *module, PyObject *function);

#endif
