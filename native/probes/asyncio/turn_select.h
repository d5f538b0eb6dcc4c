/* The wait of a selector loop, bracketed: a callable that stands in for `selector.select`, and the loop's
 * `run_forever`. */
#ifndef LOOPCANARY_TURN_SELECT_H
#define LOOPCANARY_TURN_SELECT_H

#include <Python.h>

/* Adds the type TurnSelect(selector, select, spins, is_epoll=False) to the module. */
int lc_turn_select_add(PyObject *module);

#endif
