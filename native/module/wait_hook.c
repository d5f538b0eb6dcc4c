#include "wait_hook.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include "agent.h"
#include "got.h"

static _Thread_local lc_wait own_wait __attribute__((tls_model("initial-exec")));

/* ---- what a hooked wait does ------------------------------------------------------------- */

/* Without the GIL: the agent may stop at any moment, and unmap the lane. Whoever stores to a lane says so first and looks
 * at the generation then; a stop changes the generation first and then looks whether somebody stores. */
static bool still_is_own_agent(void)
{
    return __atomic_load_n(&lc_the_agent.generation, __ATOMIC_SEQ_CST) == own_wait.generation;
}

static lc_lane *begin_storing(void)
{
    __atomic_fetch_add(&lc_the_agent.threads_storing, 1u, __ATOMIC_SEQ_CST);
    return still_is_own_agent() ? own_wait.lane : NULL;
}

static void end_storing(void) { __atomic_fetch_sub(&lc_the_agent.threads_storing, 1u, __ATOMIC_SEQ_CST); }

/* Whether the wait is the loop's. If so, this thread counts as storing until the wait is over. After
 * a signal Python's handlers run and the wait is begun again within one select: each time is a turn of its own. */
static inline bool wait_begins(void)
{
    if (own_wait.lane == NULL) {
        return false;
    }
    lc_lane *lane = begin_storing();
    if (lane == NULL || lc_lane_in_callback(lane)) {
        end_storing();
        return false;
    }
    lc_turn_end(&own_wait.context, lane);
    return true;
}

static inline void wait_ends(bool is_the_loop_s)
{
    if (is_the_loop_s) {
        const int error = errno;
        if (still_is_own_agent()) {
            lc_turn_begin(&own_wait.context, own_wait.lane);
        }
        end_storing();
        errno = error;
    }
}

/* Loops that tell by themselves wait for themselves, also inside a callback: it is judged up to here (bracket.h). */
void lc_wait_told_begin(void)
{
    if (own_wait.lane == NULL) {
        return;
    }
    lc_lane *lane = begin_storing();
    if (lane != NULL) {
        if (lc_lane_in_callback(lane)) {
            (void)lc_callback_end(&own_wait.context, lane);
        }
        lc_turn_end(&own_wait.context, lane);
    }
    end_storing();
}

void lc_wait_told_end(void)
{
    if (own_wait.lane == NULL) {
        return;
    }
    const int error = errno;
    lc_lane *lane = begin_storing();
    if (lane != NULL) {
        lc_turn_begin(&own_wait.context, lane);
    }
    end_storing();
    errno = error;
}

/* ---- the hooks --------------------------------------------------------------------------- */

/* A hook must know what it stands for, which need not be the same in all objects (others patch, too): one function for each
 * thing that has been found in an entry. What a hook leads to never changes again: threads may be inside it. */
#define WAYS 4u

#define WAIT_FUNCTION(name, parameters, arguments)                                                                \
    typedef int(*name##_function) parameters;                                                                     \
    static name##_function name##_next[WAYS];                                                                     \
    WAIT_HOOK(name, 0, parameters, arguments)                                                                     \
    WAIT_HOOK(name, 1, parameters, arguments)                                                                     \
    WAIT_HOOK(name, 2, parameters, arguments)                                                                     \
    WAIT_HOOK(name, 3, parameters, arguments)

#define WAIT_HOOK(name, way, parameters, arguments)                                                               \
    static int hooked_##name##_##way parameters                                                                   \
    {                                                                                                             \
        const bool is_the_loop_s = wait_begins();                                                                 \
        const int result = name##_next[way] arguments;                                                            \
        wait_ends(is_the_loop_s);                                                                                 \
        return result;                                                                                            \
    }

WAIT_FUNCTION(epoll_wait, (int fd, struct epoll_event *events, int room, int timeout), (fd, events, room, timeout))
WAIT_FUNCTION(epoll_pwait, (int fd, struct epoll_event *events, int room, int timeout, const sigset_t *signals),
              (fd, events, room, timeout, signals))
WAIT_FUNCTION(poll, (struct pollfd *descriptors, nfds_t count, int timeout), (descriptors, count, timeout))
WAIT_FUNCTION(ppoll,
              (struct pollfd *descriptors, nfds_t count, const struct timespec *timeout, const sigset_t *signals),
              (descriptors, count, timeout, signals))
WAIT_FUNCTION(select, (int count, fd_set *in, fd_set *out, fd_set *urgent, struct timeval *timeout),
              (count, in, out, urgent, timeout))
WAIT_FUNCTION(pselect,
              (int count, fd_set *in, fd_set *out, fd_set *urgent, const struct timespec *timeout,
               const sigset_t *signals),
              (count, in, out, urgent, timeout, signals))

typedef struct {
    const char *name;
    void *fallback;
    void **next;
    void *hooks[WAYS];
} wait_function;

#define CODE(function) ((void *)(uintptr_t)(function))
#define ROW(name)                                                                                                 \
    {#name, CODE(name), (void **)name##_next,                                                                     \
     {CODE(hooked_##name##_0), CODE(hooked_##name##_1), CODE(hooked_##name##_2), CODE(hooked_##name##_3)}}

enum { EPOLL_WAIT, WAIT_FUNCTIONS = 6 };

static wait_function wait_functions[WAIT_FUNCTIONS] = {ROW(epoll_wait), ROW(epoll_pwait), ROW(poll),
                                                       ROW(ppoll),      ROW(select),      ROW(pselect)};

/* lc_got_choose: the hook that leads to `original`. Where all ways are taken by others the entry stays as it is. */
static void *hook_for(void *function, void *original)
{
    wait_function *f = function;
    for (uint32_t way = 0; way < WAYS; way++) {
        if (original == f->hooks[way]) {
            return original; /* hooked already */
        }
    }
    for (uint32_t way = 0; way < WAYS; way++) {
        if (f->next[way] == NULL) {
            __atomic_store_n(&f->next[way], original, __ATOMIC_RELEASE);
        }
        if (f->next[way] == original) {
            return f->hooks[way];
        }
    }
    return NULL;
}

/* ---- the hooked objects ------------------------------------------------------------------ */

#define OBJECTS_MAX 16u
#define PATCHES_MAX 16u
#define PATH_ROOM 512u

typedef struct {
    unsigned uses; /* 0: the row is free */
    const void *base;
    char path[PATH_ROOM];
    lc_got_patch patches[PATCHES_MAX];
    uint8_t functions[PATCHES_MAX]; /* of the patches: which function each is of */
    size_t count;
} hooked_object;

static hooked_object objects[OBJECTS_MAX]; /* under the GIL */

static void forget_what_is_gone(hooked_object *object)
{
    size_t kept = 0;
    for (size_t i = 0; i < object->count; i++) {
        if (lc_got_is_in_place(&object->patches[i])) {
            object->patches[kept] = object->patches[i];
            object->functions[kept++] = object->functions[i];
        }
    }
    object->count = kept;
}

static void hook_function(hooked_object *object, lc_got_object where, uint8_t function)
{
    const lc_got_call call = {.symbol = wait_functions[function].name, .fallback = wait_functions[function].fallback};
    const size_t added = lc_got_replace(where, call, hook_for, &wait_functions[function],
                                        &object->patches[object->count], PATCHES_MAX - object->count);
    memset(&object->functions[object->count], function, added);
    object->count += added;
}

/* Rows of objects that have been unloaded are free again. */
static bool is_free(hooked_object *object)
{
    if (object->uses != 0) {
        forget_what_is_gone(object);
        object->uses = object->count == 0 ? 0 : object->uses;
    }
    return object->uses == 0;
}

static hooked_object *row_of(const void *base, const char *path)
{
    hooked_object *fresh = NULL;
    for (size_t i = 0; i < OBJECTS_MAX; i++) {
        if (objects[i].uses != 0 && objects[i].base == base) {
            return &objects[i];
        }
        if (fresh == NULL && is_free(&objects[i])) {
            fresh = &objects[i];
        }
    }
    if (fresh != NULL) {
        *fresh = (hooked_object){.base = base};
        snprintf(fresh->path, sizeof fresh->path, "%s", path);
    }
    return fresh;
}

static hooked_object *hook_object(lc_got_object where, uint8_t functions)
{
    char path[PATH_ROOM];
    const void *base = NULL;
    hooked_object *object = lc_got_find(where, &base, path, sizeof path) ? row_of(base, path) : NULL;
    if (object == NULL) {
        return NULL;
    }
    /* An object that has been unloaded and loaded again has its entries back, or somebody has put them back. */
    forget_what_is_gone(object);
    for (uint8_t function = 0; function < functions; function++) {
        hook_function(object, where, function);
    }
    object->uses += object->count != 0;
    return object->count != 0 ? object : NULL;
}

static void unhook_object(hooked_object *object)
{
    if (object->uses > 0 && --object->uses == 0) {
        for (size_t i = 0; i < object->count; i++) {
            (void)lc_got_restore(&object->patches[i]);
        }
    }
}

static void unhook(lc_got_object where)
{
    char path[PATH_ROOM];
    const void *base = NULL;
    if (!lc_got_find(where, &base, path, sizeof path)) {
        return;
    }
    for (size_t i = 0; i < OBJECTS_MAX; i++) {
        if (objects[i].base == base) {
            unhook_object(&objects[i]);
        }
    }
}

/* ---- the calls of Python ----------------------------------------------------------------- */

/* False with an exception set: neither an address nor a path. The path is the argument's. */
static bool read_where(PyObject *where, lc_got_object *out)
{
    *out = (lc_got_object){0};
    if (PyUnicode_Check(where)) {
        out->path = PyUnicode_AsUTF8(where);
        return out->path != NULL;
    }
    out->address = PyLong_AsVoidPtr(where);
    return !PyErr_Occurred();
}

static bool add_function(PyObject *list, const hooked_object *object, size_t i, bool with_path)
{
    const char *name = wait_functions[object->functions[i]].name;
    PyObject *row = with_path ? Py_BuildValue("(Ns)", PyUnicode_DecodeFSDefault(object->path), name)
                              : PyUnicode_FromString(name);
    const bool added = row != NULL && (PySequence_Contains(list, row) == 1 || PyList_Append(list, row) == 0);
    Py_XDECREF(row);
    return added && !PyErr_Occurred();
}

static PyObject *to_tuple(PyObject *list, bool complete)
{
    PyObject *tuple = complete && list != NULL ? PyList_AsTuple(list) : NULL;
    Py_XDECREF(list);
    return tuple;
}

PyObject *lc_hook_waits(PyObject *module, PyObject *where)
{
    lc_got_object asked;
    (void)module;
    if (!read_where(where, &asked)) {
        return NULL;
    }
    const hooked_object *object = hook_object(asked, WAIT_FUNCTIONS);
    PyObject *list = PyList_New(0);
    bool complete = list != NULL;
    for (size_t i = 0; object != NULL && i < object->count && complete; i++) {
        complete = add_function(list, object, i, false);
    }
    return to_tuple(list, complete);
}

PyObject *lc_unhook_waits(PyObject *module, PyObject *where)
{
    lc_got_object asked;
    (void)module;
    if (!read_where(where, &asked)) {
        return NULL;
    }
    unhook(asked);
    Py_RETURN_NONE;
}

PyObject *lc_hooked_waits(PyObject *module, PyObject *unused)
{
    PyObject *list = PyList_New(0);
    bool complete = list != NULL;
    (void)module;
    (void)unused;
    for (size_t i = 0; i < OBJECTS_MAX && complete; i++) {
        for (size_t j = 0; objects[i].uses > 0 && j < objects[i].count && complete; j++) {
            complete = !lc_got_is_in_place(&objects[i].patches[j]) || add_function(list, &objects[i], j, true);
        }
    }
    return to_tuple(list, complete);
}

static const void *select_code; /* in the object whose epoll_wait is hooked for asyncio; NULL: none's is */

PyObject *lc_hook_epoll_wait(PyObject *module, PyObject *poll_method)
{
    (void)module;
    if (!Py_IS_TYPE(poll_method, &PyMethodDescr_Type)) {
        Py_RETURN_FALSE;
    }
    const void *code = CODE(((PyMethodDescrObject *)poll_method)->d_method->ml_meth);
    if (select_code == NULL && hook_object((lc_got_object){.address = code}, EPOLL_WAIT + 1) != NULL) {
        select_code = code;
    }
    return PyBool_FromLong(select_code != NULL);
}

PyObject *lc_unhook_epoll_wait(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    if (select_code != NULL) {
        unhook((lc_got_object){.address = select_code});
        select_code = NULL;
    }
    Py_RETURN_NONE;
}

/* ---- runs -------------------------------------------------------------------------------- */

lc_wait lc_wait_enter(lc_lane *lane)
{
    const lc_wait outer = own_wait;
    own_wait = (lc_wait){lane, lc_the_agent.generation, lc_the_agent.watchdog.lanes};
    return outer;
}

void lc_wait_leave(lc_wait outer) { own_wait = outer; }

lc_wait lc_wait_exchange(lc_wait run)
{
    const lc_wait outer = own_wait;
    own_wait = run;
    return outer;
}

lc_wait lc_wait_suspend(void)
{
    const lc_wait outer = own_wait;
    own_wait.lane = NULL;
    return outer;
}

void lc_wait_finish(lc_wait outer, bool begins_turn)
{
    lc_lane *lane = begin_storing();
    if (lane != NULL) {
        lc_lane_drop_callback(lane);
        lc_turn_end(&own_wait.context, lane);
        if (begins_turn) {
            lc_turn_begin(&own_wait.context, lane);
        }
    }
    end_storing();
    own_wait = outer;
}
