/* asyncio's BaseEventLoop.run_forever, bracketed: the loop's first and last turn, and loops inside loops. */
#ifndef LOOPCANARY_ASYNCIO_LOOP_H
#define LOOPCANARY_ASYNCIO_LOOP_H

#include <Python.h>

/* asyncio_loop_method(loop_type, original, pristine, adopt) -> method descriptor
 *
 * original  the run_forever that is called inside
 * pristine  whether that is asyncio's own
 * adopt     adopt(loop): brackets the loop's wait, before it runs; must not raise */
PyObject *lc_asyncio_loop_method(PyObject *module, PyObject *args);

/* asyncio_loop_forget(taken_back): as asyncio_handle_forget. */
PyObject *lc_asyncio_loop_forget(PyObject *module, PyObject *taken_back);

#endif
