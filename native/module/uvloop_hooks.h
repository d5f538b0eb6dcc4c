/* uvloop, bracketed from outside: it is one shared object of C that offers no hooks.
 *
 *     uv_run                         a loop runs on this thread
 *     epoll_wait, epoll_pwait        its turns (wait_hook.h)
 *     PyContext_Enter, ..._Exit      its callbacks: uvloop enters a context around each one
 *
 * All are entries of that object's table of imported functions (native/core/got.h). Nothing of uvloop's Python side is
 * touched, so it does not matter how a loop was made. A loop that runs already when the hooks are laid has its
 * callbacks watched, each as a turn of its own: where its run ends would not be seen. */
#ifndef LOOPCANARY_UVLOOP_HOOKS_H
#define LOOPCANARY_UVLOOP_HOOKS_H

#include <Python.h>

/* hook_uvloop(Handle, TimerHandle, loop_seen, spins) -> (runs, waits, callbacks): what of it could be hooked. `loop_seen` is
 * called at each run's first callback, `spins` as spin_look.h says. Where runs or waits are not hooked, callbacks are turns by themselves. */
PyObject *lc_hook_uvloop(PyObject *module, PyObject *args);
PyObject *lc_unhook_uvloop(PyObject *module, PyObject *unused);

#endif
