/* Binds native/cpython/tasks/tasks.h: the tasks of asyncio in the main interpreter of another process.
 *
 *   outside_tasks(handle) -> (loaded, others, tasks)    after outside_threads. `loaded`: 0 asyncio is not, 1 it has no
 *                                C code, 2 it has; `others`: how many objects among its tasks are not tasks of its C
 *                                code
 *                                tasks: (address, name, loop, loop's type, state, callback, future, its type, its
 *                                callback, end's type, cut, awaits)
 *                                awaits, outermost first: (frame, first argument, held); frame as in
 *                                outside_stack; held: ((object, function), ...), as lc_held
 *   outside_number(handle, object, path) -> int | None  the attribute of an attribute ... of an instance of a Python
 *                                class, `_transport._sock_fd`, if it is an int above 0
 *   outside_module(handle, name) -> bool                whether the main interpreter has imported it
 *
 * Objects are addresses, 0: none; callbacks, types and functions are names, empty: unknown. One reading, of a
 * program that runs on. GIL held throughout. */
#include "module/other_process.h"

#include "cpython/objects/attributes.h"
#include "cpython/objects/objects.h"
#include "cpython/tasks/tasks.h"

enum { NAME_MAX_BYTES = 64, PATH_MAX_BYTES = 64, AWAITS_OF_ALL_MAX = 2000000, TASKS_PER_SIGNAL_CHECK = 256 };

/* One reading. Places and names come again and again, in thousands of tasks. */
typedef struct {
    lc_other_process *other;
    lc_tasks tasks;
    lc_task task;
    uint32_t awaits;  /* of all tasks so far */
    PyObject *places; /* by code and instruction */
    PyObject *names;  /* by address of a str or a type */
} reading;

static lc_other_process *other_of(PyObject *handle) { return PyCapsule_GetPointer(handle, LC_OTHER_PROCESS); }

/* A new reference to what `make` makes of the key, or has made of it. `key` is taken over. */
static PyObject *kept(reading *r, PyObject *known, PyObject *key,
                      PyObject *(*make)(reading *, const uint64_t *), const uint64_t *of)
{
    PyObject *value = key == NULL ? NULL : Py_XNewRef(PyDict_GetItemWithError(known, key));
    if (value == NULL && !PyErr_Occurred() && (value = make(r, of)) != NULL &&
        PyDict_SetItem(known, key, value) != 0) {
        Py_CLEAR(value);
    }
    Py_XDECREF(key);
    return value;
}

static PyObject *make_place(reading *r, const uint64_t *of)
{
    lc_place place;
    if (!lc_place_read(&r->other->source, of[0], of[1], &place)) {
        return Py_NewRef(Py_None);
    }
    return Py_BuildValue("NNIIIIII", lc_text_object((lc_text){place.qualname, place.qualname_length}),
                         lc_text_object((lc_text){place.file, place.file_length}),
                         (unsigned)place.position.line, (unsigned)place.position.end_line,
                         (unsigned)place.position.column, (unsigned)place.position.end_column,
                         (unsigned)place.first_line, (unsigned)place.flags);
}

static PyObject *make_text(reading *r, const uint64_t *of)
{
    lc_frame_source *seam = &r->other->source.source;
    return lc_text_object(*of == 0 ? (lc_text){0} : seam->text(seam, *of));
}

static PyObject *make_type_name(reading *r, const uint64_t *of)
{
    const lc_cpython_source *source = &r->other->source;
    char name[NAME_MAX_BYTES];
    const uint64_t at = lc_word_at(source, *of + source->layout.type_name);
    return lc_text_object((lc_text){name, at == 0 ? 0 : lc_read_c_string(source, at, name, sizeof name)});
}

static PyObject *text_at(reading *r, uint64_t str)
{
    return kept(r, r->names, PyLong_FromUnsignedLongLong(str), make_text, &str);
}

static PyObject *type_of(reading *r, uint64_t object)
{
    const uint64_t type = lc_type_at(&r->other->source, object);
    return type == 0 ? PyUnicode_FromString("")
                     : kept(r, r->names, PyLong_FromUnsignedLongLong(type), make_type_name, &type);
}

static PyObject *callback_name(reading *r, uint64_t callback)
{
    return text_at(r, lc_callback_name(&r->other->source, callback));
}

/* From 3.12 on a task that was given no name has a number. */
static PyObject *task_name(reading *r, uint64_t name)
{
    uint64_t number;
    return lc_read_int(&r->other->source, name, &number)
               ? PyUnicode_FromFormat("Task-%llu", (unsigned long long)number)
               : make_text(r, &name);
}

static PyObject *await_object(reading *r, const lc_await *await)
{
    const uint64_t place[] = {await->code, await->instr};
    PyObject *held = PyList_New(0);
    for (uint32_t i = 0; i < await->held_count && held != NULL; i++) {
        lc_append(&held, Py_BuildValue("KN", (unsigned long long)await->held[i].object,
                                       text_at(r, await->held[i].function)));
    }
    return Py_BuildValue("NKN",
                         kept(r, r->places,
                              Py_BuildValue("KK", (unsigned long long)place[0], (unsigned long long)place[1]),
                              make_place, place),
                         (unsigned long long)await->first, lc_tuple_of(held));
}

static PyObject *task_object(reading *r, uint64_t address)
{
    lc_task *task = &r->task;
    lc_cpython_source *source = &r->other->source;
    lc_task_read(source, &r->tasks, address, r->awaits < AWAITS_OF_ALL_MAX ? LC_AWAITS_MAX : 1, task);
    r->awaits += task->count;
    PyObject *awaits = PyList_New(0);
    for (uint32_t i = 0; i < task->count && awaits != NULL; i++) {
        lc_append(&awaits, await_object(r, &task->awaits[i]));
    }
    return Py_BuildValue("KNKNiNKNNNNN", (unsigned long long)address, task_name(r, task->name),
                         (unsigned long long)task->loop, type_of(r, task->loop), (int)task->state,
                         callback_name(r, task->callback), (unsigned long long)task->future,
                         type_of(r, task->future), callback_name(r, lc_future_callback(source, task->future)),
                         type_of(r, task->end), PyBool_FromLong(task->cut), lc_tuple_of(awaits));
}

static PyObject *read_tasks(PyObject *Py_UNUSED(module), PyObject *handle)
{
    reading *r = NULL;
    lc_pair *all = NULL;
    PyObject *list = NULL;
    uint32_t others = 0, count = 0;
    lc_other_process *other = other_of(handle);
    if (other == NULL) {
        return NULL;
    }
    r = PyMem_Calloc(1, sizeof *r);
    all = PyMem_Calloc(LC_TASKS_MAX, sizeof *all);
    if (r == NULL || all == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    r->other = other;
    r->places = PyDict_New();
    r->names = PyDict_New();
    list = r->places == NULL || r->names == NULL ? NULL : PyList_New(0);
    lc_tasks_find(&other->source, other->main_interpreter, &r->tasks);
    if (r->tasks.type != 0) {
        count = lc_tasks_list(&other->source, &r->tasks, other->main_interpreter, other->threads,
                              other->thread_count, all, LC_TASKS_MAX, &others);
        lc_tasks_learn(&other->source, &r->tasks, all, count);
    }
    for (uint32_t i = 0; i < count && list != NULL; i++) {
        lc_append(&list, task_object(r, all[i].key));
        if (list != NULL && i % TASKS_PER_SIGNAL_CHECK == 0 && PyErr_CheckSignals() != 0) {
            Py_CLEAR(list);
        }
    }
done:
    list = list == NULL ? NULL
                        : Py_BuildValue("iIN",
                                        r->tasks.type != 0 ? 2
                                        : r->tasks.loaded  ? 1
                                                           : 0,
                                        others, list);
    if (r != NULL) {
        Py_XDECREF(r->places);
        Py_XDECREF(r->names);
    }
    PyMem_Free(r);
    PyMem_Free(all);
    return list;
}

static PyObject *read_number(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *handle;
    unsigned long long object;
    const char *path;
    char name[PATH_MAX_BYTES];
    uint64_t number;
    if (!PyArg_ParseTuple(args, "OKs", &handle, &object, &path)) {
        return NULL;
    }
    lc_other_process *other = other_of(handle);
    if (other == NULL) {
        return NULL;
    }
    uint64_t at = object;
    for (size_t length; *path != '\0' && at != 0; path += length + (path[length] == '.')) {
        length = strcspn(path, ".");
        if (length >= sizeof name) {
            at = 0;
            break;
        }
        memcpy(name, path, length);
        name[length] = '\0';
        at = lc_attribute(&other->source, at, name);
    }
    return lc_read_int(&other->source, at, &number) ? PyLong_FromUnsignedLongLong(number)
                                                    : Py_NewRef(Py_None);
}

static PyObject *module_loaded(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *handle;
    const char *name;
    if (!PyArg_ParseTuple(args, "Os", &handle, &name)) {
        return NULL;
    }
    const lc_other_process *other = other_of(handle);
    return other == NULL ? NULL
                         : PyBool_FromLong(lc_module_loaded(&other->source, other->main_interpreter, name));
}

static PyMethodDef methods[] = {
    {"outside_module", module_loaded, METH_VARARGS, "See other_tasks.c."},
    {"outside_tasks", read_tasks, METH_O, "See other_tasks.c."},
    {"outside_number", read_number, METH_VARARGS, "See other_tasks.c."},
    {NULL, NULL, 0, NULL},
};

int lc_other_tasks_add(PyObject *module) { return PyModule_AddFunctions(module, methods); }
