#include "flight_view.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    PyObject_HEAD
    void *base;
    Py_ssize_t bytes;
} flight_view;

static bool map_file(flight_view *self, const char *path)
{
    struct stat facts;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return false;
    }
    void *base = MAP_FAILED;
    if (fstat(fd, &facts) == 0) {
        base = mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_SHARED, fd, 0);
    }
    const int error = errno;
    close(fd);
    errno = error;
    if (base == MAP_FAILED) {
        return false;
    }
    self->base = base;
    self->bytes = (Py_ssize_t)facts.st_size;
    return true;
}

static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *names)
{
    PyObject *path;
    if (names != NULL && PyDict_GET_SIZE(names) != 0) {
        PyErr_SetString(PyExc_TypeError, "FlightView() takes no keyword arguments");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &path)) {
        return NULL;
    }
    flight_view *self = (flight_view *)type->tp_alloc(type, 0);
    if (self != NULL && !map_file(self, PyBytes_AS_STRING(path))) {
        PyErr_SetFromErrnoWithFilename(PyExc_OSError, PyBytes_AS_STRING(path));
        Py_CLEAR(self);
    }
    Py_DECREF(path);
    return (PyObject *)self;
}

static void dealloc(PyObject *object)
{
    flight_view *self = (flight_view *)object;
    PyTypeObject *type = Py_TYPE(object);
    if (self->base != NULL) {
        munmap(self->base, (size_t)self->bytes);
    }
    type->tp_free(object);
    Py_DECREF(type);
}

/* Whoever holds the buffer holds the object, and so the mapping. */
static int get_buffer(PyObject *object, Py_buffer *view, int flags)
{
    flight_view *self = (flight_view *)object;
    return PyBuffer_FillInfo(view, object, self->base, self->bytes, 1, flags);
}

static PyType_Slot slots[] = {
    {Py_tp_doc, "FlightView(path)\n--\n\nThe bytes of a flight file that this process writes."},
    {Py_tp_new, make},
    {Py_tp_dealloc, dealloc},
    {Py_bf_getbuffer, get_buffer},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "loopcanary._native.FlightView",
    .basicsize = sizeof(flight_view),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

int lc_flight_view_add(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, NULL);
    const int result = type ? PyModule_AddObjectRef(module, "FlightView", type) : -1;
    Py_XDECREF(type);
    return result;
}
