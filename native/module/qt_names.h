/* Where objects of Qt's keep what the program calls them (native/cpython/qt_object_name.h). */
#ifndef LOOPCANARY_QT_NAMES_H
#define LOOPCANARY_QT_NAMES_H

#include <Python.h>

/* qt_learn_names(address, name, address, name) -> bool: of two QObjects of the calling thread, which stay meanwhile, and whose
 * names are these: ASCII, 8 to 40 characters, unlike each other. False: names of objects are not told. No arguments: none are from
 * now on. */
PyObject *lc_qt_learn_names(PyObject *module, PyObject *args);

#endif
