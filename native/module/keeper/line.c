/* The watched program's line to its keeper: core/keeper/courier.h.
 *
 * Adds the functions; what each does is said in its docstring. All take the GIL as held; those that wait
 * let go of it. -1 with an exception. */
#define PY_SSIZE_T_CLEAN
#include "module/bindings.h"

#include <errno.h>
#include <stdlib.h>

#include "module/agent.h"
#include "module/quiet_thread.h"

#define RING_PATIENCE_S 0.1

static unsigned starting; /* threads that read the words without the GIL; under the GIL */

/* The courier reads the old ones, if it runs, and start_keeper: then they stay, a few KB. */
static void use_words(lc_keeper_words *words)
{
    lc_courier *courier = &lc_the_agent.courier;
    lc_keeper_words *old = atomic_load(&courier->words);
    if (old != NULL && words != NULL && lc_keeper_words_equal(old, words)) {
        free(words);
        return;
    }
    atomic_store_explicit(&courier->words, words, memory_order_release);
    if (starting == 0 && !lc_the_agent.running && lc_life_is(&courier->life, LC_LIFE_OVER)) {
        free(old);
    }
}

/* The texts of a tuple of bytes, NULL at their end; they live as long as the tuple. To be given back by
 * PyMem_Free. NULL with an exception. */
static char **texts_of(PyObject *tuple)
{
    const Py_ssize_t count = PyTuple_GET_SIZE(tuple);
    char **texts = PyMem_New(char *, (size_t)count + 1);
    if (texts == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        /* Without a length wanted, a NUL inside is a ValueError. */
        if (PyBytes_AsStringAndSize(PyTuple_GET_ITEM(tuple, i), &texts[i], NULL) < 0) {
            PyMem_Free(texts);
            return NULL;
        }
    }
    texts[count] = NULL;
    return texts;
}

static PyObject *set_keeper(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *words, *environment;
    lc_keeper_paths paths;
    if (!PyArg_ParseTuple(args, "O!O!yyy", &PyTuple_Type, &words, &PyTuple_Type, &environment, &paths.mark,
                          &paths.bell, &paths.name)) {
        return NULL;
    }
    if (PyTuple_GET_SIZE(words) == 0) {
        PyErr_SetString(PyExc_ValueError, "no words: the first is the executable");
        return NULL;
    }
    char **argv = texts_of(words), **envp = argv == NULL ? NULL : texts_of(environment);
    lc_keeper_words *copy = envp == NULL ? NULL : lc_keeper_words_copy(argv, envp, &paths);
    PyMem_Free(argv);
    PyMem_Free(envp);
    if (copy == NULL) {
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    use_words(copy);
    Py_RETURN_NONE;
}

static PyObject *take_hook(void)
{
    PyObject *hook = lc_the_agent.on_take_over;
    lc_the_agent.on_take_over = NULL;
    return hook;
}

/* The courier's, without the GIL. */
static bool tell_program(void) { return lc_quiet_thread_call(take_hook); }

static PyObject *on_take_over(PyObject *Py_UNUSED(module), PyObject *hook)
{
    Py_XSETREF(lc_the_agent.on_take_over, hook == Py_None ? NULL : Py_NewRef(hook));
    lc_the_agent.courier.take_over = tell_program;
    if (hook != Py_None) {
        atomic_store(&lc_the_agent.courier.refusal, 0);
    }
    Py_RETURN_NONE;
}

static PyObject *start_keeper(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    const lc_keeper_words *words = atomic_load(&lc_the_agent.courier.words);
    int error = ENOENT;
    if (words != NULL && *words->argv[0] == '\0') {
        Py_RETURN_NONE;
    }
    starting++;
    Py_BEGIN_ALLOW_THREADS
    error = words == NULL ? ENOENT : lc_keeper_words_start(words);
    Py_END_ALLOW_THREADS
    starting--;
    return error != 0 && error != EINPROGRESS ? lc_os_error(error) : Py_NewRef(Py_None);
}

static PyObject *set_taker(PyObject *Py_UNUSED(module), PyObject *taker)
{
    const long takes = PyLong_AsLong(taker);
    if (PyErr_Occurred()) {
        return NULL;
    }
    if (lc_the_agent.running && takes >= LC_TAKES_DRAIN && takes <= LC_TAKES_KEEPER) {
        LC_STORE(lc_the_agent.flight.header->takes, (uint64_t)takes);
    }
    Py_RETURN_NONE;
}

static PyObject *ring_keeper(PyObject *Py_UNUSED(module), PyObject *args)
{
    double seconds = RING_PATIENCE_S;
    if (!PyArg_ParseTuple(args, "|d", &seconds)) {
        return NULL;
    }
    return PyBool_FromLong(lc_agent_ring_keeper(lc_deadline_after(seconds)) == 0);
}

/* The watchdog may read those before, if it runs: they stay, a few hundred bytes. False, with an
 * exception: no memory. */
static bool use_folders(PyObject *given)
{
    static lc_keeper_words *used; /* for its words; under the GIL */
    const lc_keeper_paths none = {"", "", ""};
    char *const nothing[] = {NULL};
    char **const folders = texts_of(given);
    lc_keeper_words *const copy = folders == NULL ? NULL : lc_keeper_words_copy(folders, nothing, &none);
    PyMem_Free(folders);
    if (copy == NULL) {
        PyErr_Occurred() ? NULL : PyErr_NoMemory();
        return false;
    }
    if (used != NULL && lc_keeper_words_equal(used, copy)) {
        free(copy);
    } else {
        used = copy;
    }
    atomic_store_explicit(&lc_the_agent.courier.folders, used->argv, memory_order_release);
    return true;
}

static PyObject *speaks(PyObject *Py_UNUSED(module), PyObject *args)
{
    unsigned long long device, inode;
    PyObject *folders = NULL;
    if (!PyArg_ParseTuple(args, "KK|O!", &device, &inode, &PyTuple_Type, &folders)) {
        return NULL;
    }
    lc_console_allow(&lc_the_agent.courier.console, device, inode);
    if (folders == NULL || PyTuple_GET_SIZE(folders) == 0) {
        atomic_store(&lc_the_agent.courier.folders, NULL);
    } else if (!use_folders(folders)) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *tell_hang(PyObject *Py_UNUSED(module), PyObject *args)
{
    unsigned long long slot, serial;
    if (!PyArg_ParseTuple(args, "KK", &slot, &serial)) {
        return NULL;
    }
    if (lc_the_agent.running && slot < LC_SLOT_COUNT) {
        LC_STORE(lc_the_agent.flight.keeper->told[slot], serial);
    }
    Py_RETURN_NONE;
}

static PyObject *end_with_keeper(PyObject *Py_UNUSED(module), PyObject *timeout)
{
    const double seconds = PyFloat_AsDouble(timeout);
    if (PyErr_Occurred()) {
        return NULL;
    }
    return PyBool_FromLong(lc_agent_end_with_keeper(lc_deadline_after(seconds)));
}

static PyObject *recorded(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    const uint64_t lanes = lc_agent_lanes_used(), stalls = lc_agent_stalls();
    return Py_BuildValue("KK", (unsigned long long)lanes, (unsigned long long)stalls);
}

static PyObject *flight_descriptor(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    const int fd = lc_agent_lend_flight();
    return fd < 0 ? PyErr_SetFromErrno(PyExc_OSError) : PyLong_FromLong(fd);
}

static PyObject *keeper_outcome(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return PyLong_FromLong(atomic_load(&lc_the_agent.courier.outcome));
}

static PyObject *no_keeper(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return PyLong_FromLong(atomic_load(&lc_the_agent.courier.refusal));
}

/* Errands: what a command of the same user has done in a running program. It puts a file beside the flight file
 * and counts in the keeper's page (lc_keeper); the watchdog sees that when a watched thread works next, and has
 * Python read the file on a thread of ours. Page and file are hostile: at worst our Python code runs, often. */
static PyObject *errand_hook; /* called without arguments; NULL: errands are not run. Under the GIL */

static PyObject *give_errand_hook(void) { return Py_XNewRef(errand_hook); }

bool lc_errand_run(void) { return lc_quiet_thread_call(give_errand_hook); }

static PyObject *on_errand(PyObject *Py_UNUSED(module), PyObject *called)
{
    Py_XSETREF(errand_hook, called == Py_None ? NULL : Py_NewRef(called));
    Py_RETURN_NONE;
}

static PyObject *errand_at(PyObject *Py_UNUSED(module), PyObject *ns)
{
    const unsigned long long at_ns = PyLong_AsUnsignedLongLong(ns);
    if (PyErr_Occurred()) {
        return NULL;
    }
    atomic_store(&lc_the_agent.watchdog.errand_ns, at_ns);
    lc_bell_ring(&lc_the_agent.watchdog.bell); /* one that is parked sleeps without a deadline */
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"set_keeper", set_keeper, METH_VARARGS,
     "set_keeper(words, environment, mark, bell, name): what starts a keeper, and how the link is called by "
     "which it finds the flight file; all"
     " bytes; copied."},
    {"start_keeper", start_keeper, METH_NOARGS,
     "Starts a keeper, if one is to be started and none was in the last seconds. OSError where it cannot be "
     "done."},
    {"on_take_over", on_take_over, METH_O,
     "on_take_over(hook | None): called once, without arguments and on a thread of ours, when there will be "
     "no keeper: the program is to judge its stalls."},
    {"no_keeper", no_keeper, METH_NOARGS,
     "no_keeper() -> int: why there will be no keeper, an errno (EINPROGRESS, EAGAIN: none is heard); 0: "
     "there may be one."},
    {"set_taker", set_taker, METH_O, "set_taker(taker): who takes stalls (lc_taker)."},
    {"ring_keeper", ring_keeper, METH_VARARGS,
     "ring_keeper(patience_s=0.1): whether a keeper has heard it by then; else one is started."},
    {"speaks", speaks, METH_VARARGS,
     "speaks(device, inode, folders=()): texts go to descriptor 2, while it is this file; (0, 0): nowhere. "
     "`folders`, bytes: the program's,"
     " and the library's, for the first words of hangs; (): there are none."},
    {"tell_hang", tell_hang, METH_VARARGS,
     "tell_hang(slot, serial): the program has judged this hang, which lasts."},
    {"recorded", recorded, METH_NOARGS,
     "recorded() -> (lanes that had a turn, stalls that ended; a busy watchdog may have some still to see)."},
    {"keeper_outcome", keeper_outcome, METH_NOARGS,
     "keeper_outcome() -> int: 0, the last ring was heard, or none was asked for; EINPROGRESS: a keeper is "
     "being started; else why there is none."},
    {"flight_descriptor", flight_descriptor, METH_NOARGS,
     "flight_descriptor() -> int: one more of this process's flight file, to be closed. OSError."},
    {"end_with_keeper", end_with_keeper, METH_O,
     "end_with_keeper(timeout_s) -> bool: the process ends; whether the keeper has stored it, and all texts "
     "are written."},
    {"on_errand", on_errand, METH_O,
     "on_errand(hook | None): called without arguments, on a thread of ours, when a command has an errand "
     "here."},
    {"errand_at", errand_at, METH_O,
     "errand_at(monotonic_ns): the hook is called then, too, if the engine still runs; 0: at no time."},
    {NULL, NULL, 0, NULL},
};

int lc_keeper_line_add(PyObject *module) { return PyModule_AddFunctions(module, methods); }
