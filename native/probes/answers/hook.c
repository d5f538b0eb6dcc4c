/* Answers of servers, seen in the calls by which the object that holds their sockets (Python's _socket,
 * uvloop) asks the system to receive and send (native/core/answers/answers.h). No server, protocol or stream
 * of Python's is touched: it is one place for all of them. What a call does is what it did; one that carries
 * no request costs a load and a compare more.
 *
 * All under the GIL.
 *
 * hook_answers(where) -> (symbol, ...): as hook_waits (wait_hook.h). unhook_answers(where) undoes one.
 * Each engine starts with no figures.
 * answers_gate(original, timed): takes the place of a server's method (self, application) which handles a
 * request. It is timed(self, application, fd) if the request that came last on this thread is timed, on
 * connection fd; for one of sixteen with -1, once answers_behind_tls() was called; else the original.
 * answer_handled(fd), answer_named(fd, name): lc_answers_handled, lc_answers_name. answers() -> ((thread,
 * events, lag_ns, waited_ns, worst_ns, worst, {bucket: count}), ...): one row a thread that runs a loop
 * and has answered; first, with "" as its thread, what threads without one, or without a row, have
 * answered together. */
#include "module/bindings.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/answers/answers.h"
#include "core/clock/clock.h"
#include "core/start/start.h"
#include "probes/hooks/hook_set.h"
#include "probes/hooks/patched_function.h"
#include "module/thread_lane.h"

#define SCENE_CHARACTERS 96u

/* The scene's name, read as other threads' memory is: nothing promises that the str is still there. Scenes
 * are ASCII for the most part; others have no name here. */
static bool read_scene(const lc_lane *lane, char *name, size_t room)
{
    const uint64_t address = LC_LOAD(lane->scene);
    PyASCIIObject text;
    if (address == 0 || !lc_lane_in_callback(lane) ||
        !lc_read(&lc_the_agent.reader, address, &text, sizeof text) ||
        text.ob_base.ob_type != &PyUnicode_Type || !text.state.ascii || !text.state.compact ||
        text.length <= 0) {
        return false;
    }
    const size_t length = (size_t)text.length < room - 1u ? (size_t)text.length : room - 1u;
    if (!lc_read(&lc_the_agent.reader, address + sizeof text, name, length)) {
        return false;
    }
    name[length] = '\0';
    return true;
}

/* Without the GIL, mostly: the agent is kept from going meanwhile. */
static void answered(const lc_answer *answer)
{
    const int error = errno;
    lc_start_note(LC_START_ANSWERED, false);
    char scene[SCENE_CHARACTERS];
    const lc_lane *lane = lc_storing_begin(lc_own_lane.generation) ? lc_own_lane.lane : NULL;
    lc_answer_row *row = &lc_answer_rows[0];
    if (lane != NULL && strcmp(lane->loop_kind, "thread") != 0) {
        row = lc_answers_row((uint64_t)PyThread_get_thread_ident(), lane->thread_name);
    }
    if (lc_answers_count(row, answer)) {
        const bool has_scene = lc_answers_named(answer, scene, sizeof scene) ||
                               (lane != NULL && read_scene(lane, scene, sizeof scene));
        lc_answers_name_worst(row, has_scene ? scene : lc_answers_method(answer));
    }
    lc_storing_end();
    errno = error;
}

static inline void sent(int fd, uint64_t sent_ns)
{
    lc_answer answer;
    if (lc_answers_sent(fd, sent_ns, &answer)) {
        answered(&answer);
    }
}

/* MSG_TRUNC tells what had come, which may be more than was stored. */
static inline void received_up_to(int fd, const void *data, ssize_t bytes, size_t room)
{
    lc_answers_received(fd, data, bytes < (ssize_t)room ? bytes : (ssize_t)room);
}

/* The first of several pieces is all that is looked at. */
static inline void received_pieces(int fd, const struct msghdr *message, ssize_t bytes)
{
    if (message->msg_iovlen > 0) {
        const struct iovec *first = &message->msg_iov[0];
        received_up_to(fd, first->iov_base, bytes, first->iov_len);
    }
}

#define RECEIVER(...) LC_HOOKS(RECEIVER_HOOK, ssize_t, __VA_ARGS__)

#define RECEIVER_HOOK(way, name, parameters, arguments, after)                                               \
    static ssize_t hooked_##name##_##way parameters                                                          \
    {                                                                                                        \
        const ssize_t result = name##_next[way] arguments;                                                   \
        after;                                                                                               \
        return result;                                                                                       \
    }

/* The first byte goes when the call begins: on a blocking socket it ends with the last one. */
#define SENDER(...) LC_HOOKS(SENDER_HOOK, ssize_t, __VA_ARGS__)

#define SENDER_HOOK(way, name, parameters, arguments)                                                        \
    static ssize_t hooked_##name##_##way parameters                                                          \
    {                                                                                                        \
        const uint64_t sent_ns = __builtin_expect(lc_answers_awaited(fd), 0) ? lc_now_ns() : 0;              \
        const ssize_t result = name##_next[way] arguments;                                                   \
        if (__builtin_expect(sent_ns != 0 && result > 0, 0)) {                                               \
            sent(fd, sent_ns);                                                                               \
        }                                                                                                    \
        return result;                                                                                       \
    }

RECEIVER(recv, (int fd, void *data, size_t room, int flags), (fd, data, room, flags),
         if (!(flags & MSG_PEEK)) received_up_to(fd, data, result, room))
RECEIVER(read, (int fd, void *data, size_t room), (fd, data, room), lc_answers_received(fd, data, result))
RECEIVER(recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags),
         if (!(flags & MSG_PEEK)) received_pieces(fd, message, result))
SENDER(send, (int fd, const void *data, size_t bytes, int flags), (fd, data, bytes, flags))
SENDER(write, (int fd, const void *data, size_t bytes), (fd, data, bytes))
SENDER(writev, (int fd, const struct iovec *pieces, int count), (fd, pieces, count))
SENDER(sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags))

/* A server's socket is open for connections. */
#define LISTENER_HOOK(way, name, parameters, arguments)                                                      \
    static int hooked_##name##_##way parameters                                                              \
    {                                                                                                        \
        const int result = name##_next[way] arguments;                                                       \
        if (result == 0) {                                                                                   \
            const int error = errno;                                                                         \
            lc_start_note(LC_START_LISTENING, false);                                                        \
            errno = error;                                                                                   \
        }                                                                                                    \
        return result;                                                                                       \
    }

LC_HOOKS(LISTENER_HOOK, int, listen, (int fd, int backlog), (fd, backlog))

enum { FUNCTIONS = 8 };
static lc_hooked_function functions[FUNCTIONS] = {
    LC_HOOK_ROW(recv),  LC_HOOK_ROW(read),   LC_HOOK_ROW(recvmsg), LC_HOOK_ROW(send),
    LC_HOOK_ROW(write), LC_HOOK_ROW(writev), LC_HOOK_ROW(sendmsg), LC_HOOK_ROW(listen)};
static lc_hook_set hooks = {.functions = functions}; /* under the GIL */

PyObject *lc_hook_answers(PyObject *Py_UNUSED(module), PyObject *where)
{
    return lc_hook_set_hook(&hooks, where, FUNCTIONS);
}

PyObject *lc_unhook_answers(PyObject *Py_UNUSED(module), PyObject *where)
{
    return lc_hook_set_unhook(&hooks, where);
}

static bool is_behind_tls; /* some connection; under the GIL, as is the count */
static uint32_t handled_behind_tls;

PyObject *lc_answers_behind_tls(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    is_behind_tls = true;
    Py_RETURN_NONE;
}

static PyObject *call_gate(lc_patched *patch, PyObject *const *args, size_t count, PyObject *names)
{
    const int fresh = lc_answers_fresh;
    const bool is_due = is_behind_tls && handled_behind_tls++ % LC_ANSWERS_ONE_OF == 0;
    if (__builtin_expect((fresh == 0 && !is_due) || names != NULL || PyVectorcall_NARGS(count) != 2 ||
                             patch->extra == NULL,
                         1)) {
        return lc_patched_call_original(patch, args, count, names);
    }
    lc_answers_fresh = 0;
    PyObject *connection = PyLong_FromLong(fresh - 1);
    PyObject *arguments[] = {args[0], args[1], connection};
    PyObject *result = connection == NULL ? NULL : PyObject_Vectorcall(patch->extra, arguments, 3, NULL);
    Py_XDECREF(connection);
    return result;
}

PyObject *lc_answers_gate(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *original, *timed;
    if (!PyArg_ParseTuple(args, "OO", &original, &timed)) {
        return NULL;
    }
    return lc_patched_function_new(call_gate, original, timed, 0);
}

PyObject *lc_answer_handled(PyObject *Py_UNUSED(module), PyObject *connection)
{
    const long fd = PyLong_AsLong(connection);
    if (fd == -1 && PyErr_Occurred()) {
        return NULL;
    }
    lc_answers_handled(fd >= 0 && fd < (long)LC_ANSWERS_CONNECTIONS ? (int)fd : -1);
    Py_RETURN_NONE;
}

PyObject *lc_answer_named(PyObject *Py_UNUSED(module), PyObject *args)
{
    int fd;
    const char *name;
    if (!PyArg_ParseTuple(args, "is", &fd, &name)) {
        return NULL;
    }
    lc_answers_name(fd, name);
    Py_RETURN_NONE;
}

static PyObject *counts_of(const lc_answer_row *row)
{
    PyObject *counts = PyDict_New();
    for (unsigned bucket = 0; counts != NULL && bucket < LC_ANSWERS_BUCKETS; bucket++) {
        const uint32_t count = atomic_load_explicit(&row->counts[bucket], memory_order_relaxed);
        if (count != 0) {
            PyObject *key = PyLong_FromUnsignedLong(bucket), *value = PyLong_FromUnsignedLong(count);
            if (key == NULL || value == NULL || PyDict_SetItem(counts, key, value) != 0) {
                Py_CLEAR(counts);
            }
            Py_XDECREF(key);
            Py_XDECREF(value);
        }
    }
    return counts;
}

/* Names may be cut in the middle of a character, and written to while they are read. */
static PyObject *text_of(const char *text, size_t room)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strnlen(text, room), "replace");
}

static PyObject *row_to_tuple(const lc_answer_row *row)
{
    PyObject *thread = text_of(row->thread, sizeof row->thread),
             *worst = text_of(row->worst, sizeof row->worst);
    PyObject *counts = counts_of(row), *tuple = NULL;
    if (thread != NULL && worst != NULL && counts != NULL) {
        tuple = Py_BuildValue("(OKKKKOO)", thread, (unsigned long long)row->events,
                              (unsigned long long)row->lag_ns, (unsigned long long)row->waited_ns,
                              (unsigned long long)row->worst_ns, worst, counts);
    }
    Py_XDECREF(thread);
    Py_XDECREF(worst);
    Py_XDECREF(counts);
    return tuple;
}

PyObject *lc_read_answers(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    PyObject *list = PyList_New(0);
    for (unsigned i = 0; list != NULL && i < LC_ANSWERS_ROWS; i++) {
        if (lc_answer_rows[i].events != 0) {
            lc_append(&list, row_to_tuple(&lc_answer_rows[i]));
        }
    }
    return lc_tuple_of(list);
}
