/* What a thread's greenlets do, reported at each switch between them: greenlet.settrace(GreenletTracer(...)).
 *
 * A greenlet that runs between two switches is a callback; the hub runs the loop. Turns are the hooked waits
 * of the hub's thread (wait_hook.h), or what prepare and check watchers of its loop say, where these cannot
 * be hooked. All on the tracer's thread, under the GIL. The tracer that was there before is called as ever.
 */
#pragma once

#include <Python.h>

/* Adds the type GreenletTracer to the module; negative with an exception set where that fails. */
int lc_gevent_tracer_add(PyObject *module);
