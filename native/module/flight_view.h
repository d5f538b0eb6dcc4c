/* The flight file as Python reads it in its own process: a mapping, so that no descriptor is needed, which the
 * program may close and have given to a file of its own. */
#ifndef LOOPCANARY_FLIGHT_VIEW_H
#define LOOPCANARY_FLIGHT_VIEW_H

#include <Python.h>

/* Adds the type FlightView(path) to the module: a read-only buffer of the whole file. OSError. */
int lc_flight_view_add(PyObject *module);

#endif
