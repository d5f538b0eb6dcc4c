/* Test-only: lets Python tests ask the walker about threads of their own process, from a native thread
 * that has no thread state, as the watchdog does. Built by conftest.py; never part of the wheel. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cpython/source/cpython_source.h"
#include "core/memory/memory_reader.h"
#include "cpython/walker/walker.h"

#define THREADS_ROOM 256
#define QUEUE_ROOM 8192
#define SEEN_ROOM 65536

static lc_memory_reader reader;
static lc_cpython_source source;
static uint64_t own_thread_state; /* of the importing thread: names the interpreter */

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- running something on a native thread ------------------------------------------------------ */

static void on_native_thread(void *(*run)(void *), void *argument)
{
    Py_BEGIN_ALLOW_THREADS
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, argument) == 0) {
        pthread_join(thread, NULL);
    }
    Py_END_ALLOW_THREADS
}

static uint64_t thread_state_of(uint32_t tid)
{
    lc_thread_ref threads[THREADS_ROOM];
    const uint32_t count = source.source.threads(&source.source, own_thread_state, threads, THREADS_ROOM);
    for (uint32_t i = 0; i < count; i++) {
        if (threads[i].tid == tid) {
            return threads[i].thread_state;
        }
    }
    return 0;
}

/* ---- stacks as Python values --------------------------------------------------------------------- */

static PyObject *text(lc_text t)
{
    return PyUnicode_DecodeUTF8(t.bytes == NULL ? "" : t.bytes, (Py_ssize_t)t.length, "strict");
}

static PyObject *frame_value(const lc_frame *f)
{
    return Py_BuildValue("(NNIIIIIIK)", text(f->code->qualname), text(f->code->filename), f->line,
                         f->end_line, (unsigned)f->column, (unsigned)f->end_column, f->code->first_line,
                         f->code->code_flags, (unsigned long long)f->code->serial);
}

static PyObject *stack_value(const lc_stack *stack)
{
    PyObject *frames = PyList_New(0);
    for (uint32_t i = 0; frames != NULL && i < stack->count; i++) {
        PyObject *frame = frame_value(&stack->frames[i]);
        if (frame == NULL || PyList_Append(frames, frame) < 0) {
            Py_CLEAR(frames);
        }
        Py_XDECREF(frame);
    }
    return frames;
}

static const char *const result_names[] = {"ok", "empty", "moved", "unreadable"};

/* ---- walk, gil, threads, work ------------------------------------------------------------------ */

typedef struct {
    uint32_t tid;
    lc_walk_result result;
    lc_stack stack;
    lc_gil_view gil;
} question;

static void *run_walk(void *argument)
{
    question *q = argument;
    q->result = source.source.walk(&source.source, thread_state_of(q->tid), &q->stack);
    return NULL;
}

static PyObject *probe_walk(PyObject *self, PyObject *args)
{
    (void)self;
    question q = {0};
    if (!PyArg_ParseTuple(args, "I", &q.tid)) {
        return NULL;
    }
    on_native_thread(run_walk, &q);
    return Py_BuildValue("(sNOK)", result_names[q.result], stack_value(&q.stack),
                         q.stack.truncated ? Py_True : Py_False, (unsigned long long)q.stack.hash);
}

static void *run_gil(void *argument)
{
    question *q = argument;
    source.source.gil(&source.source, thread_state_of(q->tid), &q->gil);
    return NULL;
}

static PyObject *gil_value(const lc_gil_view *gil)
{
    static const char *const names[] = {"unknown", "free", "self", "other"};
    return Py_BuildValue("(sIKK)", names[gil->state], gil->holder_tid,
                         (unsigned long long)gil->wait_address_low,
                         (unsigned long long)gil->wait_address_high);
}

static PyObject *probe_gil(PyObject *self, PyObject *args)
{
    (void)self;
    question q = {0};
    int hold = 0; /* keep the GIL while asking: it is then this thread that holds it */
    if (!PyArg_ParseTuple(args, "I|p", &q.tid, &hold)) {
        return NULL;
    }
    if (hold) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, run_gil, &q) == 0) {
            pthread_join(thread, NULL);
        }
    } else {
        on_native_thread(run_gil, &q);
    }
    return gil_value(&q.gil);
}

/* Keeps the GIL, so that the other thread can at best wait for it, and asks the kernel where it waits. */
typedef struct {
    question q;
    long long syscall;
    unsigned long long address;
} wait_question;

static void *run_wait(void *argument)
{
    wait_question *w = argument;
    char path[64];
    char text[256] = "";
    run_gil(&w->q);
    snprintf(path, sizeof path, "/proc/self/task/%u/syscall", w->q.tid);
    FILE *file = fopen(path, "r");
    w->syscall = -1;
    if (file != NULL) {
        if (fgets(text, sizeof text, file) == NULL ||
            sscanf(text, "%lld %llx", &w->syscall, &w->address) != 2) {
            w->syscall = -1;
        }
        fclose(file);
    }
    return NULL;
}

static PyObject *probe_waits_for_gil(PyObject *self, PyObject *args)
{
    (void)self;
    wait_question w = {0};
    if (!PyArg_ParseTuple(args, "I", &w.q.tid)) {
        return NULL;
    }
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_wait, &w) == 0) {
        pthread_join(thread, NULL);
    }
    if (w.syscall != SYS_futex) {
        Py_RETURN_NONE; /* on a CPU, about to wait */
    }
    return PyBool_FromLong(w.q.gil.wait_address_low <= w.address && w.address < w.q.gil.wait_address_high);
}

static PyObject *probe_threads(PyObject *self, PyObject *none)
{
    (void)self;
    (void)none;
    lc_thread_ref threads[THREADS_ROOM];
    const uint32_t count = source.source.threads(&source.source, own_thread_state, threads, THREADS_ROOM);
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; i < count && list != NULL; i++) {
        PyObject *tid = PyLong_FromUnsignedLongLong(threads[i].tid);
        if (tid == NULL || PyList_Append(list, tid) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(tid);
    }
    return list;
}

static PyObject *probe_learn_asyncio(PyObject *self, PyObject *none)
{
    (void)self;
    (void)none;
    return PyBool_FromLong(lc_cpython_source_learn_asyncio(&source));
}

static PyObject *probe_work(PyObject *self, PyObject *handle)
{
    (void)self;
    lc_work_names names;
    source.source.work(&source.source, (uint64_t)(uintptr_t)handle, own_thread_state, NULL, &names);
    return Py_BuildValue("(NN)", text(names.callback), text(names.task));
}

static PyObject *probe_text(PyObject *self, PyObject *object)
{
    (void)self;
    return text(source.source.text(&source.source, (uint64_t)(uintptr_t)object));
}

static PyObject *probe_counts(PyObject *self, PyObject *none)
{
    (void)self;
    (void)none;
    const lc_walk_counts *c = &source.counts;
    return Py_BuildValue(
        "{sKsKsKsKsKsKsKsK}", "walks", (unsigned long long)c->walks, "still", (unsigned long long)c->still,
        "unmoved", (unsigned long long)c->unmoved, "agreed", (unsigned long long)c->agreed, "shortened",
        (unsigned long long)c->shortened, "retries", (unsigned long long)c->retries, "codes_loaded",
        (unsigned long long)c->codes_loaded, "codes_trusted", (unsigned long long)c->codes_trusted);
}

/* Without it every stack has to be proven by readings that agree, also of threads that stand still. */
static PyObject *probe_use_cpu_clock(PyObject *self, PyObject *use)
{
    (void)self;
    source.walker->clock_proves = PyObject_IsTrue(use) == 1;
    Py_RETURN_NONE;
}

/* ---- deaths of code objects -------------------------------------------------------------------- */

static PyObject *probe_watch_deaths(PyObject *self, PyObject *none)
{
    (void)self;
    (void)none;
    if (source.deaths == NULL) {
        source.deaths = lc_code_deaths_watch();
    }
    return PyBool_FromLong(source.deaths != NULL);
}

static PyObject *probe_leave_deaths(PyObject *self, PyObject *none)
{
    (void)self;
    (void)none;
    if (source.deaths != NULL) {
        source.deaths = NULL;
        lc_code_deaths_leave();
    }
    Py_RETURN_NONE;
}

static PyObject *probe_deaths_at(PyObject *self, PyObject *address)
{
    (void)self;
    uint64_t count = 0;
    if (!lc_deaths_counted(source.deaths, PyLong_AsUnsignedLongLong(address), &count)) {
        Py_RETURN_NONE;
    }
    return PyLong_FromUnsignedLongLong(count);
}

/* Another tool: its function calls what it has found. */
static destructor found;

static void other_destructor(PyObject *code) { found(code); }

static PyObject *probe_wrap_destructor(PyObject *self, PyObject *none)
{
    (void)self;
    (void)none;
    found = PyCode_Type.tp_dealloc;
    PyCode_Type.tp_dealloc = other_destructor;
    Py_RETURN_NONE;
}

static PyObject *probe_unwrap_destructor(PyObject *self, PyObject *none)
{
    (void)self;
    (void)none;
    PyCode_Type.tp_dealloc = found;
    Py_RETURN_NONE;
}

static PyObject *probe_destructor(PyObject *self, PyObject *none)
{
    (void)self;
    (void)none;
    return PyLong_FromVoidPtr((void *)(uintptr_t)PyCode_Type.tp_dealloc);
}

/* ---- sampling every thread, for the churn test ----------------------------------------------------- */

typedef struct { /* a stack on its own: facts are only valid until the next walk */
    uint32_t count;
    bool truncated;
    uint32_t frames[LC_STACK_FRAMES_MAX][2]; /* line, first line */
    size_t text_bytes;
    char text[]; /* qualname NUL filename NUL ... */
} logged_stack;

static struct {
    pthread_t thread;
    pthread_mutex_t lock;
    _Atomic bool running;
    uint32_t interval_us;
    logged_stack *queue[QUEUE_ROOM];
    uint32_t queued;
    uint64_t results[4];
    uint64_t seen[SEEN_ROOM]; /* hashes: equal stacks, serials of their code included, are judged once */
    uint64_t repeated;
    uint64_t dropped;
    uint64_t rounds;
    uint64_t walk_ns_max;
} sampler = {.lock = PTHREAD_MUTEX_INITIALIZER};

static logged_stack *log_stack(const lc_stack *stack)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < stack->count; i++) {
        bytes += stack->frames[i].code->qualname.length + stack->frames[i].code->filename.length + 2;
    }
    logged_stack *log = malloc(sizeof *log + bytes);
    if (log == NULL) {
        return NULL;
    }
    log->count = stack->count;
    log->truncated = stack->truncated;
    log->text_bytes = bytes;
    char *at = log->text;
    for (uint32_t i = 0; i < stack->count; i++) {
        const lc_code_facts *code = stack->frames[i].code;
        log->frames[i][0] = stack->frames[i].line;
        log->frames[i][1] = code->first_line;
        memcpy(at, code->qualname.bytes, code->qualname.length);
        at += code->qualname.length;
        *at++ = '\0';
        memcpy(at, code->filename.bytes, code->filename.length);
        at += code->filename.length;
        *at++ = '\0';
    }
    return log;
}

static void sample_all(void)
{
    static lc_stack stack;
    lc_thread_ref threads[THREADS_ROOM];
    const uint32_t count = source.source.threads(&source.source, own_thread_state, threads, THREADS_ROOM);
    for (uint32_t i = 0; i < count; i++) {
        if (threads[i].thread_state == own_thread_state) {
            continue;
        }
        const uint64_t begin = now_ns();
        const lc_walk_result result = source.source.walk(&source.source, threads[i].thread_state, &stack);
        const uint64_t took = now_ns() - begin;
        sampler.walk_ns_max = took > sampler.walk_ns_max ? took : sampler.walk_ns_max;
        sampler.results[result]++;
        if (result != LC_WALK_OK) {
            continue;
        }
        uint64_t *seen = &sampler.seen[stack.hash % SEEN_ROOM];
        if (*seen == stack.hash) {
            sampler.repeated++;
            continue;
        }
        *seen = stack.hash;
        logged_stack *log = log_stack(&stack);
        pthread_mutex_lock(&sampler.lock);
        if (log != NULL && sampler.queued < QUEUE_ROOM) {
            sampler.queue[sampler.queued++] = log;
            log = NULL;
        } else {
            sampler.dropped++;
        }
        pthread_mutex_unlock(&sampler.lock);
        free(log);
    }
}

static void *run_sampler(void *argument)
{
    (void)argument;
    struct timespec due;
    clock_gettime(CLOCK_MONOTONIC, &due);
    while (sampler.running) {
        sample_all();
        sampler.rounds++;
        due.tv_nsec += (long)sampler.interval_us * 1000;
        due.tv_sec += due.tv_nsec / 1000000000;
        due.tv_nsec %= 1000000000;
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) == EINTR) {
        }
    }
    return NULL;
}

static PyObject *probe_start(PyObject *self, PyObject *args)
{
    (void)self;
    if (!PyArg_ParseTuple(args, "I", &sampler.interval_us)) {
        return NULL;
    }
    memset(sampler.results, 0, sizeof sampler.results);
    sampler.dropped = sampler.repeated = sampler.rounds = sampler.walk_ns_max = 0;
    sampler.running = true;
    if (pthread_create(&sampler.thread, NULL, run_sampler, NULL) != 0) {
        sampler.running = false;
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    Py_RETURN_NONE;
}

static PyObject *probe_stop(PyObject *self, PyObject *none)
{
    (void)self;
    (void)none;
    sampler.running = false;
    Py_BEGIN_ALLOW_THREADS
    pthread_join(sampler.thread, NULL);
    Py_END_ALLOW_THREADS
    return Py_BuildValue("{sKsKsKsKsKsKsKsK}", "ok", (unsigned long long)sampler.results[LC_WALK_OK], "empty",
                         (unsigned long long)sampler.results[LC_WALK_EMPTY], "moved",
                         (unsigned long long)sampler.results[LC_WALK_MOVED], "unreadable",
                         (unsigned long long)sampler.results[LC_WALK_UNREADABLE], "repeated",
                         (unsigned long long)sampler.repeated, "dropped", (unsigned long long)sampler.dropped,
                         "rounds", (unsigned long long)sampler.rounds, "walk_ns_max",
                         (unsigned long long)sampler.walk_ns_max);
}

static PyObject *logged_value(const logged_stack *log)
{
    PyObject *frames = PyList_New(0);
    const char *at = log->text;
    for (uint32_t i = 0; i < log->count && frames != NULL; i++) {
        const char *qualname = at;
        at += strlen(at) + 1;
        const char *filename = at;
        at += strlen(at) + 1;
        PyObject *frame = Py_BuildValue("(ssII)", qualname, filename, log->frames[i][0], log->frames[i][1]);
        if (frame == NULL || PyList_Append(frames, frame) < 0) {
            Py_CLEAR(frames);
        }
        Py_XDECREF(frame);
    }
    return Py_BuildValue("(NO)", frames, log->truncated ? Py_True : Py_False);
}

static PyObject *probe_take(PyObject *self, PyObject *none)
{
    (void)self;
    (void)none;
    static logged_stack *taken[QUEUE_ROOM];
    pthread_mutex_lock(&sampler.lock);
    const uint32_t count = sampler.queued;
    memcpy(taken, sampler.queue, count * sizeof taken[0]);
    sampler.queued = 0;
    pthread_mutex_unlock(&sampler.lock);
    PyObject *stacks = PyList_New(0);
    for (uint32_t i = 0; i < count; i++) {
        PyObject *stack = stacks == NULL ? NULL : logged_value(taken[i]);
        if (stacks != NULL && (stack == NULL || PyList_Append(stacks, stack) < 0)) {
            Py_CLEAR(stacks);
        }
        Py_XDECREF(stack);
        free(taken[i]);
    }
    return stacks;
}

/* ---- the self-test ------------------------------------------------------------------------------- */

/* Of a source whose layout has another number for one fact: why it is refused, or None. */
static PyObject *probe_self_test(PyObject *self, PyObject *args)
{
    static const struct {
        const char *name;
        size_t offset;
    } facts[] = {
#define FACT(name, ...) {#name, offsetof(lc_layout, name)},
        LC_LAYOUT_TABLE(FACT)
#undef FACT
    };
    (void)self;
    const char *name;
    int shift;
    const char *why_not = NULL;
    if (!PyArg_ParseTuple(args, "si", &name, &shift)) {
        return NULL;
    }
    lc_cpython_source other = source;
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) {
        if (strcmp(facts[i].name, name) == 0) {
            *(uint32_t *)((char *)&other.layout + facts[i].offset) += (uint32_t)shift;
        }
    }
    lc_self_test(&other, &why_not);
    return Py_BuildValue("z", why_not);
}

static PyMethodDef methods[] = {
    {"self_test", probe_self_test, METH_VARARGS, NULL},
    {"walk", probe_walk, METH_VARARGS, NULL},
    {"gil", probe_gil, METH_VARARGS, NULL},
    {"waits_for_gil", probe_waits_for_gil, METH_VARARGS, NULL},
    {"threads", probe_threads, METH_NOARGS, NULL},
    {"learn_asyncio", probe_learn_asyncio, METH_NOARGS, NULL},
    {"work", probe_work, METH_O, NULL},
    {"text", probe_text, METH_O, NULL},
    {"counts", probe_counts, METH_NOARGS, NULL},
    {"use_cpu_clock", probe_use_cpu_clock, METH_O, NULL},
    {"watch_deaths", probe_watch_deaths, METH_NOARGS, NULL},
    {"leave_deaths", probe_leave_deaths, METH_NOARGS, NULL},
    {"deaths_at", probe_deaths_at, METH_O, NULL},
    {"wrap_destructor", probe_wrap_destructor, METH_NOARGS, NULL},
    {"unwrap_destructor", probe_unwrap_destructor, METH_NOARGS, NULL},
    {"destructor", probe_destructor, METH_NOARGS, NULL},
    {"start", probe_start, METH_VARARGS, NULL},
    {"stop", probe_stop, METH_NOARGS, NULL},
    {"take", probe_take, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "walker_probe", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_walker_probe(void)
{
    const char *why_not = "no way to read memory";
    if (lc_memory_reader_open(&reader, getpid()) == LC_READER_NONE ||
        !lc_cpython_source_open(&source, &reader, &why_not)) {
        PyErr_SetString(PyExc_ImportError, why_not);
        return NULL;
    }
    own_thread_state = (uint64_t)(uintptr_t)PyThreadState_Get();
    source.deaths = lc_code_deaths_watch(); /* as the agent does */
    return PyModule_Create(&module);
}
