/* Who scheduled a callback, where asyncio knows: in its debug mode. */
#ifndef LOOPCANARY_ASYNCIO_SITE_H
#define LOOPCANARY_ASYNCIO_SITE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

/* What is asked of asyncio: its Handle type, and the globals of asyncio.events, which say where asyncio lies. GIL held.
 * Where it is not as it was known, nothing is answered later. No exception is left set. */
void lc_asyncio_site_learn(PyObject *handle_type, PyObject *events_globals);

/* The innermost place outside of asyncio's own files where a handle was made; of the step of a task, where the task was.
 * As lc_site_of; 0: asyncio did not note it. What it names is the file's name of a code object, which lives as long as that.
 *
 * GIL held, the handle's own thread, before the handle runs. Without debug mode one load. No exception is left set. */
uint64_t lc_asyncio_site_of(PyObject *handle, PyObject *callback);

#endif
