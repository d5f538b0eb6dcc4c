/* asyncio's Handle._run in C: what the original does, and the callback's bracket around it. */
#ifndef LOOPCANARY_ASYNCIO_HANDLE_H
#define LOOPCANARY_ASYNCIO_HANDLE_H

#include <Python.h>

/* asyncio_handle_method(handle_type, timer_type, original, describe, adopt, sites, globals) -> method descriptor
 *
 * handle_type  asyncio.events.Handle
 * timer_type   asyncio.events.TimerHandle
 * original     None to replace the original `_run`; or the `_run` that other code put there: it is called
 *              inside the bracket instead
 * describe     describe(handle, exception) -> what the loop's exception handler is given
 * adopt        adopt(loop): called once per thread, with the loop whose handle is the first seen on it
 * sites        (code, (lasti, line), (lasti, line)) of the original's calls of callback and exception handler, for
 *              tracebacks; code None where the original is not asyncio's own
 * globals      of the original, for tracebacks
 */
PyObject *lc_asyncio_handle_method(PyObject *module, PyObject *args);

/* asyncio_handle_forget(taken_back): forgets what asyncio_handle_method was given last. `taken_back`: whether the
 * method could be taken out again, or another patch lies over it. */
PyObject *lc_asyncio_handle_forget(PyObject *module, PyObject *taken_back);

#endif
