/* Test-only: counts what a thread asks of the interpreter's allocators. Built by conftest.py; never part of
 * the wheel.
 *
 * The drain has work of its own meanwhile. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

static PyMemAllocatorEx originals[2];
static const PyMemAllocatorDomain domains[2] = {PYMEM_DOMAIN_MEM, PYMEM_DOMAIN_OBJ};
static _Thread_local size_t allocations;

static void *counted_malloc(void *context, size_t size)
{
    const PyMemAllocatorEx *original = context;
    allocations++;
    return original->malloc(original->ctx, size);
}

static void *counted_calloc(void *context, size_t count, size_t size)
{
    const PyMemAllocatorEx *original = context;
    allocations++;
    return original->calloc(original->ctx, count, size);
}

static void *counted_realloc(void *context, void *memory, size_t size)
{
    const PyMemAllocatorEx *original = context;
    allocations++;
    return original->realloc(original->ctx, memory, size);
}

static void uncounted_free(void *context, void *memory)
{
    const PyMemAllocatorEx *original = context;
    original->free(original->ctx, memory);
}

/* count(callable) -> how many blocks this thread asked for while it ran */
static PyObject *count(PyObject *module, PyObject *callable)
{
    (void)module;
    for (int i = 0; i < 2; i++) {
        PyMem_GetAllocator(domains[i], &originals[i]);
        PyMemAllocatorEx counting = {&originals[i], counted_malloc, counted_calloc, counted_realloc,
                                     uncounted_free};
        PyMem_SetAllocator(domains[i], &counting);
    }
    allocations = 0;
    PyObject *result = PyObject_CallNoArgs(callable);
    const size_t counted = allocations;
    for (int i = 0; i < 2; i++) {
        PyMem_SetAllocator(domains[i], &originals[i]);
    }
    if (result == NULL) {
        return NULL;
    }
    Py_DECREF(result);
    return PyLong_FromSize_t(counted);
}

static PyMethodDef methods[] = {{"count", count, METH_O, NULL}, {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "allocation_probe", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_allocation_probe(void) { return PyModule_Create(&definition); }
