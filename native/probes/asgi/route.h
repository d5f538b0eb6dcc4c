/* Scenes of routes of ASGI frameworks, without a frame of Python's on the way of most requests.
 *
 * A route's handler runs in the task of its request; its scene is the context's, and has to be put back where
 * that goes on. The task that a server makes for one request ends with it: there it is left. Only what else a
 * context may be used for needs the coroutine around the handler that puts it back, which costs a request
 * several microseconds of code and data gone cold.
 *
 * All under the GIL.
 *
 * asgi_root(function): a server's coroutine function which is all of a request's task.
 * asgi_route(original, around, known, mounted) takes the place of the route's method (self, scope,
 * receive, send). Where the name of the scene is known, the task is such a one, and it is in no scene yet:
 * enters the scene, and is the original. Else it is `around`. `known`: {(method, path): name}, where the
 * path is the context's `mounted` and the route's `path_format`. */
#pragma once

#include <Python.h>

PyObject *lc_asgi_root(PyObject *module, PyObject *function);
PyObject *lc_asgi_route(PyObject *module, PyObject *args);
