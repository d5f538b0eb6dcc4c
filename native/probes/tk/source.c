#include "probes/tk/source.h"

#include <dlfcn.h>

#include "core/got/symbol.h"
#include "probes/tk/frames.h"
#include "probes/hooks/wait_hook.h"

#define TCL_DONT_WAIT (1 << 1) /* tcl.h */

typedef void event_procedure(void *data, int flags); /* Tcl_EventSetupProc, Tcl_EventCheckProc */
typedef void event_source_function(event_procedure *setup, event_procedure *check, void *data);

static struct {
    event_source_function *create;
    event_source_function *delete;
} tcl;

static _Thread_local bool has_source __attribute__((tls_model("initial-exec")));

static void about_to_wait(void *Py_UNUSED(data), int Py_UNUSED(flags))
{
    lc_wait_told_begin();
    lc_tk_drawing *drawing = lc_own_tk_drawing;
    if (drawing != NULL) {
        lc_tk_drawing_waits(drawing);
    }
}

static void has_waited(void *Py_UNUSED(data), int flags)
{
    if (lc_own_tk_drawing != NULL) {
        lc_tk_drawing_waited(lc_own_tk_drawing, (flags & TCL_DONT_WAIT) != 0);
    }
    lc_wait_told_end();
}

PyObject *lc_tk_learn(PyObject *Py_UNUSED(module), PyObject *path)
{
    const char *name = path == Py_None ? NULL : PyUnicode_AsUTF8(path);
    if (PyErr_Occurred()) {
        return NULL;
    }
    /* Of a loaded object dlsym looks into what that is linked to as well. */
    void *object = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    event_source_function *create, *delete;
    const bool found = object != NULL && lc_symbol_find(object, "Tcl_CreateEventSource", &create) &&
                       lc_symbol_find(object, "Tcl_DeleteEventSource", &delete);
    if (found) {
        tcl.create = create;
        tcl.delete = delete; /* the object stays loaded: Python never unloads an extension */
    }
    if (object != NULL) {
        dlclose(object);
    }
    return PyBool_FromLong(found);
}

void lc_tk_source_open(void)
{
    if (!has_source && tcl.create != NULL) {
        has_source = true;
        tcl.create(about_to_wait, has_waited, NULL);
    }
}

void lc_tk_source_close(void)
{
    if (has_source) {
        has_source = false;
        tcl.delete(about_to_wait, has_waited, NULL);
    }
}
