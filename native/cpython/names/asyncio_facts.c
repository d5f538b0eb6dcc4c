/* Where this asyncio keeps things: its C structures are private and have changed in patch releases,
 * so they are not in the layout table. They are learned by making one of each and looking where the
 * known pointers are. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "cpython/names/member_offset.h"
#include "cpython/objects/raised.h"
#include "cpython/source/cpython_source.h"

/* A task that never runs, on a loop that only notes what it is asked to call. The coroutine
 * is closed and the task's log switched off, so that neither warns that it was never awaited. */
static const char PROBE[] = "class Loop:\n"
                            "    step = None\n"
                            "    def get_debug(self):\n"
                            "        return False\n"
                            "    def call_soon(self, callback, *args, context=None):\n"
                            "        self.step = callback\n"
                            "    def call_exception_handler(self, context):\n"
                            "        pass\n"
                            "async def coroutine():\n"
                            "    pass\n"
                            "def make_task(Task, name):\n"
                            "    loop = Loop()\n"
                            "    body = coroutine()\n"
                            "    try:\n"
                            "        task = Task(body, loop=loop, name=name)\n"
                            "        task._log_destroy_pending = False\n"
                            "    finally:\n"
                            "        body.close()\n"
                            "    step, loop.step = loop.step, None\n"
                            "    return task, body, step\n";

enum { THREAD_STATE_WORDS = 160 }; /* no version's has more */

static uint64_t address_of(const void *object) { return (uint64_t)(uintptr_t)object; }

/* A borrowed reference to an attribute of a module that is already imported; NULL otherwise. The module
 * keeps it alive. */
static PyObject *imported(const char *module, const char *attribute)
{
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *found = PyDict_GetItemString(modules, module);
    PyObject *value = found == NULL ? NULL : PyObject_GetAttrString(found, attribute);
    if (value == NULL) {
        PyErr_Clear();
        return NULL;
    }
    Py_DECREF(value);
    return value;
}

/* The offset of the one word of the object that is `pointer`; 0 if there is none or more than one. */
static uint32_t offset_of_pointer(PyObject *object, const void *pointer)
{
    const Py_ssize_t size = Py_TYPE(object)->tp_basicsize;
    uint32_t found = 0;
    for (Py_ssize_t at = (Py_ssize_t)sizeof(PyObject); at + (Py_ssize_t)sizeof(void *) <= size;
         at += (Py_ssize_t)sizeof(void *)) {
        void *word;
        memcpy(&word, (const char *)object + at, sizeof word);
        if (word == pointer) {
            if (found != 0) {
                return 0;
            }
            found = (uint32_t)at;
        }
    }
    return found;
}

/* Types are recognised by their address for as long as the source lives: a reference is kept for ever,
 * so that the address cannot come to mean something else. */
static uint64_t keep(PyTypeObject *type)
{
    Py_INCREF(type);
    return address_of(type);
}

static bool learn_handle(lc_asyncio_facts *facts)
{
    PyObject *handle = imported("asyncio.events", "Handle");
    if (handle == NULL || !PyType_Check(handle)) {
        return false;
    }
    facts->handle_callback = lc_member_offset(handle, "_callback");
    if (facts->handle_callback == 0) {
        return false;
    }
    facts->handle_type = keep((PyTypeObject *)handle);
    return true;
}

static void learn_from_task(lc_asyncio_facts *facts, PyTypeObject *type, PyObject *task, PyObject *body,
                            PyObject *step, PyObject *name)
{
    facts->task_coroutine = offset_of_pointer(task, body);
    facts->task_name = offset_of_pointer(task, name);
    if (!Py_IS_TYPE(task, type) || facts->task_coroutine == 0 || facts->task_name == 0) {
        return;
    }
    facts->task_type = keep(type);
    /* A Python function or method if the step was replaced: then it is no wrapper to be known by type. */
    facts->step_task =
        PyFunction_Check(step) || PyMethod_Check(step) || step == Py_None ? 0 : offset_of_pointer(step, task);
    if (facts->step_task != 0) {
        facts->step_type = keep(Py_TYPE(step));
    }
}

static void learn_task(lc_asyncio_facts *facts)
{
    PyObject *type = imported("_asyncio", "Task");
    PyObject *names = PyDict_New();
    PyObject *name = PyUnicode_FromFormat("loopcanary probe %p", (void *)facts);
    PyObject *ran = NULL;
    PyObject *made = NULL;
    if (type == NULL || !PyType_Check(type) || names == NULL || name == NULL ||
        PyDict_SetItemString(names, "__builtins__", PyEval_GetBuiltins()) < 0) {
        goto done;
    }
    ran = PyRun_String(PROBE, Py_file_input, names, names);
    PyObject *make_task = ran == NULL ? NULL : PyDict_GetItemString(names, "make_task");
    if (make_task == NULL) {
        goto done;
    }
    made = PyObject_CallFunctionObjArgs(make_task, type, name, NULL);
    if (made != NULL && PyTuple_Check(made) && PyTuple_GET_SIZE(made) == 3) {
        learn_from_task(facts, (PyTypeObject *)type, PyTuple_GET_ITEM(made, 0), PyTuple_GET_ITEM(made, 1),
                        PyTuple_GET_ITEM(made, 2), name);
    }
done:
    Py_XDECREF(made);
    Py_XDECREF(ran);
    Py_XDECREF(name);
    Py_XDECREF(names);
    lc_raised_pass_on();
}

static void learn_partial(lc_asyncio_facts *facts)
{
    PyObject *type = imported("functools", "partial");
    if (type == NULL || !PyType_Check(type)) {
        return;
    }
    PyObject *partial = PyObject_CallOneArg(type, type); /* any callable does; this one is at hand */
    if (partial != NULL && Py_IS_TYPE(partial, (PyTypeObject *)type)) {
        facts->partial_function = offset_of_pointer(partial, type);
        if (facts->partial_function != 0) {
            facts->partial_type = keep((PyTypeObject *)type);
        }
    }
    Py_XDECREF(partial);
    PyErr_Clear();
}

/* Before 3.14: the loops' current tasks are in a dict. */
static void learn_current_tasks(lc_asyncio_facts *facts)
{
    PyObject *tasks = imported("asyncio.tasks", "_current_tasks");
    if (tasks != NULL && PyDict_CheckExact(tasks)) {
        facts->current_tasks = address_of(Py_NewRef(tasks)); /* kept for ever, as types are */
    }
}

/* The offset of the one word of the calling thread's state, or of what may lie behind it, that is
 * `object`; 0 if there is none or more than one. */
static uint32_t offset_in_thread_state(const lc_cpython_source *source, const void *object)
{
    uint64_t words[THREAD_STATE_WORDS];
    uint32_t found = 0;
    if (!lc_read(source->reader, address_of(PyThreadState_Get()), words, sizeof words)) {
        return 0;
    }
    for (uint32_t i = 0; i < THREAD_STATE_WORDS; i++) {
        if (words[i] == address_of(object)) {
            if (found != 0) {
                return 0;
            }
            found = i * (uint32_t)sizeof words[0];
        }
    }
    return found;
}

/* From 3.14 on a thread's state has its running loop, and behind it that loop's current task. No header
 * that users have says where, and patch releases have moved both. So another loop is set for a moment, and
 * looked for: asyncio's two functions are C code that lets no other thread run, and what was set is kept
 * alive and set again. */
static void learn_running_loop(const lc_cpython_source *source, lc_asyncio_facts *facts)
{
    PyObject *get = imported("_asyncio", "_get_running_loop");
    PyObject *set = imported("_asyncio", "_set_running_loop");
    PyObject *made_up = PyList_New(0);
    PyObject *running = get != NULL && set != NULL && made_up != NULL ? PyObject_CallNoArgs(get) : NULL;
    PyObject *done = running != NULL ? PyObject_CallOneArg(set, made_up) : NULL;
    if (done != NULL) {
        facts->running_loop = offset_in_thread_state(source, made_up);
        Py_DECREF(done);
        Py_XDECREF(PyObject_CallOneArg(set, running));
    }
    Py_XDECREF(running);
    Py_XDECREF(made_up);
    PyErr_Clear();
}

bool lc_cpython_source_learn_asyncio(lc_cpython_source *source)
{
    lc_asyncio_facts *facts = &source->asyncio;
    if (atomic_load_explicit(&facts->learned, memory_order_acquire)) {
        return true;
    }
    if (source->walker == NULL || !learn_handle(facts)) {
        return false;
    }
    learn_task(facts);
    learn_partial(facts);
    if (source->layout.dict_keys != LC_ABSENT) {
        learn_current_tasks(facts);
    } else {
        learn_running_loop(source, facts);
    }
    atomic_store_explicit(&facts->learned, true, memory_order_release);
    return true;
}

bool lc_cpython_source_learn_trio(lc_cpython_source *source, void *task_type)
{
    lc_trio_facts *facts = &source->trio;
    if (atomic_load_explicit(&facts->learned, memory_order_acquire)) {
        return true;
    }
    if (source->walker == NULL || !PyType_Check((PyObject *)task_type)) {
        return false;
    }
    facts->task_coroutine = lc_member_offset(task_type, "coro");
    facts->task_name = lc_member_offset(task_type, "name");
    if (facts->task_coroutine == 0 || facts->task_name == 0) {
        return false;
    }
    Py_INCREF((PyObject *)task_type); /* for ever: its address must not come to mean something else */
    facts->task_type = (uint64_t)(uintptr_t)task_type;
    atomic_store_explicit(&facts->learned, true, memory_order_release);
    return true;
}
