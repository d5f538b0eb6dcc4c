/* uvloop, bracketed from outside: it is one shared object of C that offers no hooks.
 *
 *     uv_run                         a loop runs on this thread
 *     epoll_wait, epoll_pwait        its turns (wait_hook.h)
 *     PyContext_Enter, ..._Exit      its callbacks: uvloop enters a context around each one
 *     uv_idle_start, uv_check_start  which of these are no callbacks: the handles that run the queue and the
 *                                    writes
 *
 * What runs is uvloop's own business: a callback is named by asyncio's current task, or by the outermost
 * function that the loop has called (native/cpython/names/work_words.h).
 *
 * All are entries of that object's table of imported functions (native/core/got/got.h). Nothing of
 * uvloop's Python side is touched, so it does not matter how a loop was made. A loop that runs already
 * when the hooks are laid has its callbacks watched, each as a turn of its own: where its run ends would
 * not be seen. */
#pragma once

#include <Python.h>

/* hook_uvloop(Handle, running_loop, loop_seen, spins) -> (runs, waits, callbacks): what could be hooked.
 * `running_loop` gives the thread's, `loop_seen` is called at each run's first callback, `spins` as of
 * TurnSelect (probes/asyncio/turn_select.c), before the queue runs. Where runs or waits are not hooked,
 * callbacks are turns by themselves. */
PyObject *lc_hook_uvloop(PyObject *module, PyObject *args);
PyObject *lc_unhook_uvloop(PyObject *module, PyObject *unused);
