/* What selectors.EpollSelector.select does (CPython Lib/selectors.py, the same from 3.11 to 3.15), without a frame of Python's:
 * a turn of an asyncio loop then costs less than it does in a program that is not watched.
 *
 * Both under the GIL. */
#ifndef LOOPCANARY_EPOLL_SELECT_H
#define LOOPCANARY_EPOLL_SELECT_H

#include <Python.h>
#include <stdbool.h>

/* What the selector keeps for its life; new references. */
typedef struct {
    PyObject *poll;      /* of its select.epoll, bound; NULL: this is no such selector */
    PyObject *fd_to_key; /* dict: descriptor -> SelectorKey */
} lc_epoll_select;

/* `selector` is a selectors.EpollSelector. False without an exception where it is not made as these are. */
bool lc_epoll_select_open(PyObject *selector, lc_epoll_select *out);

/* Whether lc_epoll_select_call knows what this argument means. `is_zero`: it is the int 0. */
bool lc_epoll_select_takes(const lc_epoll_select *select, PyObject *timeout, bool is_zero);

/* selector.select(timeout): a new list, NULL with an exception. */
PyObject *lc_epoll_select_call(const lc_epoll_select *select, PyObject *timeout);

#endif
