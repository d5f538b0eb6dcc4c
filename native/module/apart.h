/* Starting `loopcanary notify` beside the program. */
#ifndef LOOPCANARY_APART_H
#define LOOPCANARY_APART_H

#include <Python.h>

/* spawn_apart(words, environment, log): lists of bytes, the first word the executable's path, and the file for
 * stderr. OSError where it cannot be started. Lets go of the GIL. See spawn_apart.h. */
PyObject *lc_spawn_apart_py(PyObject *module, PyObject *args);

/* The texts of a tuple of bytes, NULL at their end; they live as long as the tuple. To be given back by PyMem_Free. NULL with an
 * exception. */
char **lc_texts_of(PyObject *tuple);

#endif
