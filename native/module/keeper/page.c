/* KeeperPage: the keeper's page of another process's flight file, for the keeper
 * (core/keeper/keeper_page.h). The methods keep the GIL: what they write is memory, or the page cache of a
 * disk.
 *
 * open_keeper(path) -> KeeperPage. OSError where the file cannot be opened; ValueError where it is no
 * flight file of this user and version. */
#define PY_SSIZE_T_CLEAN
#include "module/bindings.h"

#include <errno.h>
#include <stdbool.h>

#include "core/flight/flight_format.h"
#include "core/keeper/keeper_page.h"

typedef struct {
    PyObject_HEAD
    lc_keeper_page page;
} keeper_page;

static PyObject *answered(int error) { return error != 0 ? lc_os_error(error) : Py_NewRef(Py_None); }

/* NULL with an exception: it is closed. */
static const lc_keeper_page *page_of(PyObject *self)
{
    const lc_keeper_page *page = &((keeper_page *)self)->page;
    if (page->fd < 0) {
        PyErr_SetString(PyExc_ValueError, "the keeper's page is closed");
        return NULL;
    }
    return page;
}

static PyObject *note_slot(PyObject *self, PyObject *args,
                           int (*note)(const lc_keeper_page *, uint64_t, uint64_t))
{
    unsigned long long slot, serial;
    const lc_keeper_page *page = page_of(self);
    if (page == NULL || !PyArg_ParseTuple(args, "KK", &slot, &serial)) {
        return NULL;
    }
    if (slot >= LC_SLOT_COUNT) {
        return PyErr_Format(PyExc_ValueError, "slot %llu of %u", slot, LC_SLOT_COUNT);
    }
    return answered(note(page, slot, serial));
}

static PyObject *take(PyObject *self, PyObject *args) { return note_slot(self, args, lc_keeper_page_take); }

static PyObject *tell(PyObject *self, PyObject *args) { return note_slot(self, args, lc_keeper_page_tell); }

static PyObject *beat(PyObject *self, PyObject *now_ns)
{
    const lc_keeper_page *page = page_of(self);
    const unsigned long long now = page == NULL ? 0 : PyLong_AsUnsignedLongLong(now_ns);
    return PyErr_Occurred() ? NULL : answered(lc_keeper_page_beat(page, now));
}

static PyObject *say(PyObject *self, PyObject *text)
{
    char *bytes;
    Py_ssize_t count;
    const lc_keeper_page *page = page_of(self);
    if (page == NULL || PyBytes_AsStringAndSize(text, &bytes, &count) != 0) {
        return NULL;
    }
    const int error = lc_keeper_page_say(page, bytes, (size_t)count);
    if (error == EAGAIN || error == EMSGSIZE) {
        Py_RETURN_FALSE;
    }
    PyObject *none = answered(error);
    Py_XDECREF(none);
    return none == NULL ? NULL : Py_NewRef(Py_True);
}

static PyObject *set_closed(PyObject *self, PyObject *Py_UNUSED(unused))
{
    const lc_keeper_page *page = page_of(self);
    return page == NULL ? NULL : answered(lc_keeper_page_set_closed(page));
}

static PyObject *errand(PyObject *self, PyObject *Py_UNUSED(unused))
{
    const lc_keeper_page *page = page_of(self);
    return page == NULL ? NULL : answered(lc_keeper_page_errand(page));
}

static PyObject *close_page(PyObject *self, PyObject *Py_UNUSED(unused))
{
    lc_keeper_page_close(&((keeper_page *)self)->page);
    Py_RETURN_NONE;
}

static void dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    lc_keeper_page_close(&((keeper_page *)self)->page);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"take", take, METH_VARARGS, "take(slot, serial): the stall of this serial is stored."},
    {"tell", tell, METH_VARARGS, "tell(slot, serial): the hang of this serial was judged while it lasts."},
    {"beat", beat, METH_O, "beat(monotonic_ns): this process serves the file, and has looked."},
    {"say", say, METH_O,
     "say(text) -> bool: for the program's stderr. False: the one before is not written, or it is too long."},
    {"set_closed", set_closed, METH_NOARGS, "The end of the process is stored, and all texts were put."},
    {"errand", errand, METH_NOARGS, "A command has put an errand beside the file: module/keeper/line.c."},
    {"close", close_page, METH_NOARGS, "Gives the file back; idempotent."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_methods, methods},
    {Py_tp_dealloc, dealloc},
    {Py_tp_doc,
     "The keeper's page of a flight file. Methods raise OSError, and ValueError once it is closed."},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "loopcanary._native.KeeperPage",
    .basicsize = sizeof(keeper_page),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

static PyTypeObject *type; /* the module's, which keeps it; the main interpreter has it alone (module.c) */

PyObject *lc_open_keeper(PyObject *Py_UNUSED(module), PyObject *path)
{
    PyObject *encoded;
    const char *why = NULL;
    if (!PyUnicode_FSConverter(path, &encoded)) {
        return NULL;
    }
    keeper_page *self = (keeper_page *)type->tp_alloc(type, 0);
    if (self != NULL) {
        const int error = lc_keeper_page_open(&self->page, PyBytes_AS_STRING(encoded), &why);
        if (why != NULL) {
            PyErr_Format(PyExc_ValueError, "%R: %s", path, why);
        } else if (error != 0) {
            errno = error;
            PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, path);
        }
        if (error != 0) {
            Py_CLEAR(self);
        }
    }
    Py_DECREF(encoded);
    return (PyObject *)self;
}

int lc_keeper_page_add(PyObject *module)
{
    type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return type == NULL ? -1 : PyModule_AddObjectRef(module, "KeeperPage", (PyObject *)type);
}
