#include "qt_names.h"

#include "agent.h"
#include "qt_object_name.h"

#define UNITS_MAX 40

static uint32_t widen(const char *text, uint16_t *into)
{
    uint32_t units = 0;
    while (units < UNITS_MAX && text[units] != '\0') {
        into[units] = (unsigned char)text[units];
        units++;
    }
    return units;
}

PyObject *lc_qt_learn_names(PyObject *module, PyObject *args)
{
    unsigned long long objects[2];
    const char *names[2];
    uint16_t wide[2][UNITS_MAX];
    lc_qt_named known[2];
    (void)module;
    lc_qt_forget_object_names();
    if (PyTuple_GET_SIZE(args) == 0) {
        Py_RETURN_FALSE;
    }
    if (!PyArg_ParseTuple(args, "KsKs", &objects[0], &names[0], &objects[1], &names[1])) {
        return NULL;
    }
    for (int i = 0; i < 2; i++) {
        known[i] = (lc_qt_named){objects[i], wide[i], widen(names[i], wide[i])};
    }
    return PyBool_FromLong(lc_the_agent.running &&
                           lc_qt_learn_object_names(&lc_the_agent.source, known));
}
