#define PY_SSIZE_T_CLEAN
#include "module/keeper/line.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "module/agent.h"
#include "module/apart.h"
#include "module/keeper/errands.h"
#include "module/quiet_thread.h"
#include "module/thread_lane.h"

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

static PyObject *set_keeper(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *words, *environment;
    lc_keeper_paths paths;
    if (!PyArg_ParseTuple(args, "O!O!yyyy", &PyTuple_Type, &words, &PyTuple_Type, &environment, &paths.log, &paths.bell, &paths.link,
                          &paths.file)) {
        return NULL;
    }
    if (PyTuple_GET_SIZE(words) == 0) {
        PyErr_SetString(PyExc_ValueError, "no words: the first is the executable");
        return NULL;
    }
    char **argv = lc_texts_of(words), **envp = argv == NULL ? NULL : lc_texts_of(environment);
    lc_keeper_words *copy = envp == NULL ? NULL : lc_keeper_words_copy(argv, envp, &paths);
    PyMem_Free(argv);
    PyMem_Free(envp);
    if (copy == NULL) {
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    use_words(copy);
    Py_RETURN_NONE;
}

/* ---- the program takes its stalls ---- */

static uint64_t generation_now(void) { return __atomic_load_n(&lc_the_agent.generation, __ATOMIC_SEQ_CST); }

/* The engine that was to take over may have ended meanwhile, and the interpreter with it. */
static void *call_hook(void *generation)
{
    prctl(PR_SET_NAME, "loopcanary", 0, 0, 0);
    lc_thread_is_ours = true;
    if (generation_now() != (uintptr_t)generation) {
        return NULL;
    }
    const PyGILState_STATE state = PyGILState_Ensure();
    PyObject *hook = lc_the_agent.on_take_over;
    lc_the_agent.on_take_over = NULL;
    PyObject *result = hook == NULL ? NULL : PyObject_CallNoArgs(hook);
    if (hook != NULL && result == NULL) {
        PyErr_WriteUnraisable(hook);
    }
    Py_XDECREF(result);
    Py_XDECREF(hook);
    PyGILState_Release(state);
    return NULL;
}

/* The courier's, without the GIL. */
static bool tell_program(void)
{
    return lc_quiet_thread_start(call_hook, (void *)(uintptr_t)generation_now()) == 0;
}

static PyObject *on_take_over(PyObject *Py_UNUSED(module), PyObject *hook)
{
    Py_XSETREF(lc_the_agent.on_take_over, hook == Py_None ? NULL : Py_NewRef(hook));
    lc_the_agent.courier.take_over = tell_program;
    Py_RETURN_NONE;
}

static PyObject *load_soon(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    atomic_store(&lc_the_agent.courier.has_notes, true);
    lc_agent_tell();
    Py_RETURN_NONE;
}

static PyObject *load_again(PyObject *Py_UNUSED(module), PyObject *hook)
{
    Py_XSETREF(lc_the_agent.on_take_over, Py_NewRef(hook));
    atomic_store(&lc_the_agent.courier.is_loaded, false);
    if (lc_the_agent.running) {
        lc_bell_ring_shared(&lc_the_agent.flight.keeper->bell);
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
    if (error != 0 && error != EINPROGRESS) {
        errno = error;
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    Py_RETURN_NONE;
}

static PyObject *set_taker(PyObject *Py_UNUSED(module), PyObject *taker)
{
    const long takes = PyLong_AsLong(taker);
    if (PyErr_Occurred()) {
        return NULL;
    }
    if (lc_the_agent.running && takes >= LC_TAKES_DRAIN && takes <= LC_TAKES_LATER) {
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

static PyObject *speaks(PyObject *Py_UNUSED(module), PyObject *args)
{
    unsigned long long device, inode;
    if (!PyArg_ParseTuple(args, "KK", &device, &inode)) {
        return NULL;
    }
    lc_console_allow(&lc_the_agent.courier.console, device, inode);
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
    const lc_kept_file *file = &lc_the_agent.flight.file;
    const bool is_there = lc_the_agent.running && lc_kept_file_is_ours(file);
    const int fd = is_there ? fcntl(file->fd, F_DUPFD_CLOEXEC, file->fd) : -1;
    if (fd < 0) {
        errno = is_there ? errno : EBADF; /* or the program has closed it */
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    return PyLong_FromLong(fd);
}

static PyObject *keeper_outcome(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return PyLong_FromLong(atomic_load(&lc_the_agent.courier.outcome));
}

static PyObject *no_keeper(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return PyLong_FromLong(atomic_load(&lc_the_agent.courier.refusal));
}

static PyMethodDef methods[] = {
    {"set_keeper", set_keeper, METH_VARARGS,
     "set_keeper(words, environment, log, bell, link, file): what starts a keeper, and the link by which it finds the flight file (b'': it needs"
     " none); all bytes; copied."},
    {"start_keeper", start_keeper, METH_NOARGS,
     "Starts a keeper, if one is to be started and none was in the last seconds. OSError where it cannot be done."},
    {"on_take_over", on_take_over, METH_O,
     "on_take_over(hook | None): called once, without arguments and on a thread of ours, when the program is to take its stalls itself."},
    {"load_soon", load_soon, METH_NOARGS,
     "load_soon(): where the program is to load what takes its stalls, it does so now: something has ended that is no stall."},
    {"load_again", load_again, METH_O,
     "load_again(hook): as on_take_over; the last call has failed. It comes again after some seconds, if anything waits."},
    {"no_keeper", no_keeper, METH_NOARGS,
     "no_keeper() -> int: why there will be no keeper, an errno (EINPROGRESS, EAGAIN: none is heard); 0: there may be one."},
    {"set_taker", set_taker, METH_O, "set_taker(taker): who takes stalls (lc_taker)."},
    {"ring_keeper", ring_keeper, METH_VARARGS,
     "ring_keeper(patience_s=0.1): whether a keeper has heard it by then; else one is started."},
    {"speaks", speaks, METH_VARARGS,
     "speaks(device, inode): texts of the keeper go to descriptor 2, while it is this file; (0, 0): nowhere."},
    {"recorded", recorded, METH_NOARGS, "recorded() -> (lanes that had a turn, stalls that ended; a busy watchdog may have some still to see)."},
    {"keeper_outcome", keeper_outcome, METH_NOARGS,
     "keeper_outcome() -> int: 0, the last ring was heard, or none was asked for; EINPROGRESS: a keeper is being started; else why there is none."},
    {"flight_descriptor", flight_descriptor, METH_NOARGS,
     "flight_descriptor() -> int: one more of this process's flight file, to be closed. OSError."},
    {"end_with_keeper", end_with_keeper, METH_O,
     "end_with_keeper(timeout_s) -> bool: the process ends; whether the keeper has stored it, and all texts are written."},
    {NULL, NULL, 0, NULL},
};

int lc_keeper_line_add(PyObject *module) { return PyModule_AddFunctions(module, methods) == 0 ? lc_errands_add(module) : -1; }
