/* KeeperPage: the keeper's page of another process's flight file, for the keeper
 * (core/keeper/keeper_page.h). The methods keep the GIL: what they write is memory, or the page cache of a
 * disk. */
#pragma once

#include <Python.h>

/* open_keeper(path) -> KeeperPage. OSError where the file cannot be opened; ValueError where it is no
 * flight file of this user and version. */
PyObject *lc_open_keeper(PyObject *module, PyObject *path);

/* Adds the type. -1 with an exception. */
int lc_keeper_page_add(PyObject *module);
