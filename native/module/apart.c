#define PY_SSIZE_T_CLEAN
#include "module/apart.h"

#include <errno.h>

#include "core/host/spawn_apart.h"

char **lc_texts_of(PyObject *tuple)
{
    const Py_ssize_t count = PyTuple_GET_SIZE(tuple);
    char **texts = PyMem_New(char *, (size_t)count + 1);
    if (texts == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        /* Without a length wanted, a NUL inside is a ValueError. */
        if (PyBytes_AsStringAndSize(PyTuple_GET_ITEM(tuple, i), &texts[i], NULL) < 0) {
            PyMem_Free(texts);
            return NULL;
        }
    }
    texts[count] = NULL;
    return texts;
}

PyObject *lc_spawn_apart_py(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *words, *environment;
    const char *log;
    if (!PyArg_ParseTuple(args, "O!O!y", &PyTuple_Type, &words, &PyTuple_Type, &environment, &log)) {
        return NULL;
    }
    if (PyTuple_GET_SIZE(words) == 0) {
        PyErr_SetString(PyExc_ValueError, "no words: the first is the executable");
        return NULL;
    }
    char **argv = lc_texts_of(words);
    char **envp = argv == NULL ? NULL : lc_texts_of(environment);
    int error = 0;
    if (envp != NULL) {
        Py_BEGIN_ALLOW_THREADS
        error = lc_spawn_apart(argv[0], argv, envp, log);
        Py_END_ALLOW_THREADS
    }
    PyMem_Free(argv);
    PyMem_Free(envp);
    if (envp == NULL) {
        return NULL;
    }
    if (error != 0) {
        errno = error;
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    Py_RETURN_NONE;
}
