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
#include "module/bindings.h"

#include "module/thread_lane.h"
#include "probes/hooks/patched_function.h"
#include "cpython/objects/raised.h"

#include <stdbool.h>

#define ROOTS 4u

/* Of the patch's `extra`. */
enum { AROUND, KNOWN, MOUNTED, PARTS };
enum { SELF, SCOPE, ARGUMENTS = 4 };

/* Kept for ever: one interpreter, and a route may be called after the module has gone. */
static PyObject *roots[ROOTS]; /* code objects */
static unsigned root_count;
static struct {
    bool is_learned;
    PyObject *ask;
    PyObject *tasks; /* before 3.12: {loop: task} */
} asyncio;
static PyObject *get_coro_name, *method_name, *fastapi_name, *path_format_name;

PyObject *lc_asgi_root(PyObject *Py_UNUSED(module), PyObject *function)
{
    PyObject *code = PyFunction_Check(function) ? PyFunction_GET_CODE(function) : NULL;
    bool is_known = code == NULL;
    for (unsigned i = 0; i < root_count; i++) {
        is_known |= roots[i] == code;
    }
    if (!is_known && root_count < ROOTS) {
        roots[root_count++] = Py_NewRef(code);
    }
    Py_RETURN_NONE;
}

static bool is_root(PyObject *coroutine)
{
    if (!PyCoro_CheckExact(coroutine)) {
        return false;
    }
#if PY_VERSION_HEX >= 0x030C0000
    PyObject *code = (PyObject *)PyGen_GetCode((PyGenObject *)coroutine);
#else
    PyObject *code = Py_NewRef((PyObject *)((PyCoroObject *)coroutine)->cr_code);
#endif
    bool found = false;
    for (unsigned i = 0; i < root_count; i++) {
        found |= roots[i] == code;
    }
    Py_DECREF(code);
    return found;
}

/* The running task, a new reference. NULL, perhaps with an exception: there is none. From 3.12 on
 * asyncio.current_task is C. */
static PyObject *running_task(void)
{
#if PY_VERSION_HEX >= 0x030C0000
    PyObject *task = asyncio.ask == NULL ? NULL : PyObject_CallNoArgs(asyncio.ask);
    return task == Py_None ? (Py_DECREF(task), NULL) : task;
#else
    PyObject *loop = asyncio.ask == NULL ? NULL : PyObject_CallNoArgs(asyncio.ask);
    PyObject *task = loop == NULL ? NULL : PyDict_GetItemWithError(asyncio.tasks, loop); /* borrowed */
    Py_XDECREF(loop);
    return Py_XNewRef(task);
#endif
}

static void learn_asyncio(void)
{
    PyObject *module = PyImport_ImportModule("_asyncio");
#if PY_VERSION_HEX >= 0x030C0000
    asyncio.ask = module == NULL ? NULL : PyObject_GetAttrString(module, "current_task");
#else
    asyncio.tasks = module == NULL ? NULL : PyObject_GetAttrString(module, "_current_tasks");
    const bool is_dict = asyncio.tasks != NULL && PyDict_Check(asyncio.tasks);
    asyncio.ask = is_dict ? PyObject_GetAttrString(module, "_get_running_loop") : NULL;
#endif
    Py_XDECREF(module);
    PyErr_Clear();
    asyncio.is_learned = true;
}

/* The running task if it is all of one request, a new reference; else NULL, perhaps with an exception. */
static PyObject *request_s_task(void)
{
    if (root_count == 0) {
        return NULL;
    }
    if (!asyncio.is_learned) {
        learn_asyncio();
    }
    PyObject *task = running_task();
    PyObject *coroutine = task == NULL ? NULL : PyObject_CallMethodNoArgs(task, get_coro_name);
    const bool is_its_own = coroutine != NULL && is_root(coroutine);
    Py_XDECREF(coroutine);
    if (!is_its_own) {
        Py_CLEAR(task);
    }
    return task;
}

/* Borrowed; NULL, perhaps with an exception: not known. */
static PyObject *known_name(PyObject *parts, PyObject *route, PyObject *scope)
{
    if (!PyDict_CheckExact(scope) || PyDict_Contains(scope, fastapi_name) != 0) {
        return NULL; /* FastAPI's routers share routes between places */
    }
    PyObject *mounted = NULL, *method = PyDict_GetItemWithError(scope, method_name);
    PyObject *path = method == NULL ? NULL : PyObject_GetAttr(route, path_format_name);
    if (path == NULL || PyContextVar_Get(PyTuple_GET_ITEM(parts, MOUNTED), NULL, &mounted) != 0 ||
        mounted == NULL) {
        Py_XDECREF(path);
        return NULL;
    }
    if (PyUnicode_Check(mounted) && PyUnicode_Check(path) && PyUnicode_GET_LENGTH(mounted) > 0) {
        Py_SETREF(path, PyUnicode_Concat(mounted, path));
    }
    PyObject *key = path == NULL ? NULL : PyTuple_Pack(2, method, path);
    PyObject *name = key == NULL ? NULL : PyDict_GetItemWithError(PyTuple_GET_ITEM(parts, KNOWN), key);
    Py_XDECREF(key);
    Py_XDECREF(path);
    Py_DECREF(mounted);
    return name;
}

static bool is_in_no_scene(void)
{
    PyObject *scene = lc_thread_lane_scene();
    Py_XDECREF(scene);
    return scene == NULL && PyErr_Occurred() == NULL;
}

/* Nobody puts the scene back: it is over with the task, for those, too, that the task started. */
static bool enter(PyObject *name, PyObject *task)
{
    PyObject *life = PyWeakref_NewRef(task, NULL);
    PyObject *held = life == NULL ? NULL : PyList_New(2);
    if (held == NULL) {
        Py_XDECREF(life);
        return false;
    }
    PyList_SET_ITEM(held, 0, Py_NewRef(name));
    PyList_SET_ITEM(held, 1, life);
    PyObject *token = PyContextVar_Set(lc_the_agent.scene_variable, held);
    Py_DECREF(held);
    lc_lane *lane = lc_thread_lane_peek();
    if (token != NULL && lane != NULL) {
        LC_STORE(lane->scene, (uint64_t)(uintptr_t)name); /* which the context keeps */
    }
    Py_XDECREF(token);
    return token != NULL;
}

static PyObject *call_route(lc_patched *patch, PyObject *const *args, size_t count, PyObject *names)
{
    PyObject *parts = patch->extra;
    if (parts == NULL) {
        return lc_patched_call_original(patch, args, count, names);
    }
    const bool may_be = names == NULL && PyVectorcall_NARGS(count) == ARGUMENTS && lc_the_agent.running &&
                        lc_the_agent.scene_variable != NULL;
    PyObject *task = may_be && is_in_no_scene() ? request_s_task() : NULL;
    PyObject *name = task == NULL ? NULL : known_name(parts, args[SELF], args[SCOPE]);
    const bool entered = name != NULL && lc_the_agent.scene_variable != NULL && enter(name, task);
    Py_XDECREF(task);
    if (entered) {
        return lc_patched_call_original(patch, args, count, names);
    }
    if (PyErr_Occurred() && !lc_raised_is_ours(NULL)) {
        return NULL;
    }
    return PyObject_Vectorcall(PyTuple_GET_ITEM(parts, AROUND), args, count, names);
}

PyObject *lc_asgi_route(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *original, *around, *known, *mounted;
    if (!PyArg_ParseTuple(args, "OOO!O!", &original, &around, &PyDict_Type, &known, &PyContextVar_Type,
                          &mounted)) {
        return NULL;
    }
    if (path_format_name == NULL) {
        get_coro_name = PyUnicode_InternFromString("get_coro");
        method_name = PyUnicode_InternFromString("method");
        fastapi_name = PyUnicode_InternFromString("fastapi");
        path_format_name = PyUnicode_InternFromString("path_format");
    }
    if (get_coro_name == NULL || method_name == NULL || fastapi_name == NULL || path_format_name == NULL) {
        return NULL;
    }
    PyObject *parts = PyTuple_Pack(PARTS, around, known, mounted);
    PyObject *made = parts == NULL ? NULL : lc_patched_function_new(call_route, original, parts, 0);
    Py_XDECREF(parts);
    return made;
}
