#include "uvloop_work.h"

#include <string.h>

#define SITES_MAX 32u
#define CALLS_TO_LEARN 3u  /* from one place, that agree */
#define CALLS_TO_DOUBT 64u /* after which what is still ambiguous stays so */
#define FRESH_STARTS_MAX 4u
#define OBJECT_WORDS_MAX 32u

_Static_assert(LC_UVLOOP_WORDS <= 64, "candidates are bits of a word");

typedef enum { HOLDS_HANDLE, HOLDS_TIMER, HOLDS_CALLABLE } holding;

/* A place in uvloop's code that enters contexts. */
typedef struct {
    uintptr_t return_address; /* 0: free */
    uint64_t candidates;      /* the words that have fitted each time */
    uint32_t calls;
    uint8_t holds; /* holding */
    uint8_t index; /* of the word, once it is learned */
    bool is_learned;
    uint8_t fresh_starts;
} call_site;

static struct {
    PyTypeObject *handle;
    PyTypeObject *timer;
    call_site sites[SITES_MAX];
    call_site *last_site;
} uvloop;

/* Of objects: their words, by plain loads or by careful reads. */
typedef struct {
    uint64_t words[OBJECT_WORDS_MAX];
    uint32_t count;
} object_words;

static bool read_object(const lc_cpython_source *source, uintptr_t address, size_t bytes, object_words *out)
{
    out->count = (uint32_t)(bytes / 8u < OBJECT_WORDS_MAX ? bytes / 8u : OBJECT_WORDS_MAX);
    return lc_read(source->reader, address, out->words, out->count * 8u);
}

static PyTypeObject *type_of_address(const lc_cpython_source *source, uintptr_t address)
{
    struct {
        uint64_t count, type;
    } head;
    _Static_assert(offsetof(PyObject, ob_type) == 8, "the head of an object");
    if (address % 8u != 0 || address < 4096u || address >> 47 != 0 ||
        !lc_read(source->reader, address, &head, sizeof head)) {
        return NULL;
    }
    return (PyTypeObject *)(uintptr_t)head.type;
}

/* The one word that is the context; 0: none, or several. */
static uint32_t context_place(const object_words *object, const PyObject *context)
{
    uint32_t found = 0;
    for (uint32_t i = 2; i < object->count; i++) {
        if (object->words[i] == (uint64_t)(uintptr_t)context) {
            if (found != 0) {
                return 0;
            }
            found = i;
        }
    }
    return found;
}

/* ---- the handles' fields ----------------------------------------------------------------- */

/* uvloop/cbhandles.pxd has had the same fields since uvloop 0.12; in words from `context` on:
 *     Handle       context, _cancelled, meth_name, cb_type, callback, arg1
 *     TimerHandle  callback, args, _cancelled, timer, loop, context, _debug_info, __weakref__, _when
 * Each is believed only where it is of the kind that it has to be. */
enum {
    HANDLE_NAME = 2,
    HANDLE_TYPE = 3,
    HANDLE_FIRST = 5,
    TIMER_CALLBACK = -5,
    TIMER_ARGUMENTS = -4,
    TIMER_WHEN = 3,
};

enum { PLAIN_CALLBACK = 1, CALLBACK_TYPES = 5 };

static uint32_t callback_type(const object_words *handle, uint32_t context)
{
    return (uint32_t)handle->words[context + HANDLE_TYPE]; /* an int, in the word's lower half */
}

/* Whether all fields that are looked at lie inside the object, its context being there. */
static bool has_room(holding holds, const object_words *object, uint32_t context)
{
    return holds == HOLDS_HANDLE ? context + HANDLE_FIRST < object->count
                                 : context >= 2u + (uint32_t)-TIMER_CALLBACK && context + TIMER_WHEN < object->count;
}

static bool is_handle(const lc_cpython_source *source, const object_words *handle, uint32_t context)
{
    if (!has_room(HOLDS_HANDLE, handle, context)) {
        return false;
    }
    const uint32_t type = callback_type(handle, context);
    const uint64_t name = handle->words[context + HANDLE_NAME];
    return type >= PLAIN_CALLBACK && type <= CALLBACK_TYPES &&
           (name == (uint64_t)(uintptr_t)Py_None || type_of_address(source, name) == &PyUnicode_Type);
}

static bool is_timer(const lc_cpython_source *source, const object_words *timer, uint32_t context)
{
    if (!has_room(HOLDS_TIMER, timer, context)) {
        return false;
    }
    const uint64_t arguments = timer->words[context + TIMER_ARGUMENTS];
    return arguments == (uint64_t)(uintptr_t)Py_None || type_of_address(source, arguments) == &PyTuple_Type;
}

static bool is_callable(const lc_cpython_source *source, const PyTypeObject *type)
{
    return type == &PyMethod_Type || type == &PyFunction_Type || type == &PyCFunction_Type ||
           (uint64_t)(uintptr_t)type == source->asyncio.partial_type;
}

/* ---- learning ---------------------------------------------------------------------------- */

/* Whether the word is an object that a place of the code could be about; what it then holds. */
static bool fits(const lc_cpython_source *source, uintptr_t word, const PyObject *context, const PyObject *outer,
                 holding *holds)
{
    object_words object;
    if (word == (uintptr_t)outer || word == (uintptr_t)context) {
        return false;
    }
    const PyTypeObject *type = type_of_address(source, word);
    if (type == NULL) {
        return false;
    }
    if (type == uvloop.handle || type == uvloop.timer) {
        *holds = type == uvloop.handle ? HOLDS_HANDLE : HOLDS_TIMER;
        if (!read_object(source, word, (size_t)type->tp_basicsize, &object)) {
            return false;
        }
        const uint32_t place = context_place(&object, context);
        return place != 0 && (*holds == HOLDS_HANDLE ? is_handle(source, &object, place)
                                                     : is_timer(source, &object, place));
    }
    *holds = HOLDS_CALLABLE;
    return is_callable(source, type);
}

static void start_afresh(call_site *site)
{
    site->calls = 0;
    site->candidates = 0;
    site->fresh_starts++;
}

/* The words that fit at this call. Handles count before callables: a handle's callback may lie beside it. */
static uint64_t look_at_words(const lc_cpython_source *source, const call_site *site, const PyObject *context,
                              const uintptr_t *words, const PyObject *outer, holding *holds)
{
    uint64_t fitting[3] = {0};
    for (uint32_t i = 0; i < LC_UVLOOP_WORDS; i++) {
        holding each;
        const bool is_out = site->calls > 0 && (site->candidates >> i & 1u) == 0;
        if (i != LC_UVLOOP_RETURN && !is_out && fits(source, words[i], context, outer, &each)) {
            fitting[each] |= UINT64_C(1) << i;
        }
    }
    *holds = site->calls > 0       ? (holding)site->holds
             : fitting[HOLDS_HANDLE] ? HOLDS_HANDLE
             : fitting[HOLDS_TIMER]  ? HOLDS_TIMER
                                     : HOLDS_CALLABLE;
    return fitting[*holds];
}

/* Whether all candidates are one object at this call. */
static bool agree(uint64_t candidates, const uintptr_t *words)
{
    const uintptr_t first = words[__builtin_ctzll(candidates)];
    for (uint64_t rest = candidates; rest != 0; rest &= rest - 1u) {
        if (words[__builtin_ctzll(rest)] != first) {
            return false;
        }
    }
    return true;
}

/* The object at this call, 0 where it cannot be told. */
static uintptr_t learn(const lc_cpython_source *source, call_site *site, const PyObject *context,
                       const uintptr_t *words, const PyObject *outer)
{
    holding holds;
    const uint64_t fitting = look_at_words(source, site, context, words, outer, &holds);
    if (fitting == 0) {
        start_afresh(site);
        return 0;
    }
    site->holds = (uint8_t)holds;
    site->candidates = fitting;
    site->calls++;
    /* The word that the caller itself will use is among them: where it is the only one, it is that. */
    if (site->calls >= CALLS_TO_LEARN && (fitting & (fitting - 1u)) == 0) {
        site->index = (uint8_t)__builtin_ctzll(fitting);
        site->is_learned = true;
    }
    return agree(fitting, words) ? words[__builtin_ctzll(fitting)] : 0;
}

static call_site *site_of(uintptr_t return_address)
{
    if (__builtin_expect(uvloop.last_site != NULL && uvloop.last_site->return_address == return_address, 1)) {
        return uvloop.last_site;
    }
    for (uint32_t i = 0; i < SITES_MAX; i++) {
        call_site *site = &uvloop.sites[i];
        if (site->return_address == return_address || site->return_address == 0) {
            site->return_address = return_address;
            uvloop.last_site = site;
            return site;
        }
    }
    return NULL;
}

/* ---- reading ----------------------------------------------------------------------------- */

static double due_of(const lc_cpython_source *source, uint64_t when, bool proven)
{
    PyFloatObject value;
    if (proven) {
        return when != 0 && PyFloat_CheckExact((PyObject *)(uintptr_t)when)
                   ? PyFloat_AS_DOUBLE((PyObject *)(uintptr_t)when)
                   : 0;
    }
    return type_of_address(source, when) == &PyFloat_Type && lc_read(source->reader, when, &value, sizeof value)
               ? value.ob_fval
               : 0;
}

static lc_uvloop_work work_of_timer(const lc_cpython_source *source, const uint64_t *fields, bool proven)
{
    return (lc_uvloop_work){
        .role = LC_UVLOOP_CALLBACK,
        .callable = (PyObject *)(uintptr_t)fields[TIMER_CALLBACK],
        .due_s = due_of(source, fields[TIMER_WHEN], proven),
        .proven = proven,
    };
}

/* uvloop's handles for methods of its own have their names. Two of them run other handles, or many writes. */
static bool runs_others(PyObject *name)
{
    static PyObject *known; /* a constant of uvloop's: mostly the same object */
    if (name != known && PyUnicode_CheckExact(name) &&
        (PyUnicode_CompareWithASCIIString(name, "loop._on_idle") == 0 ||
         PyUnicode_CompareWithASCIIString(name, "loop._exec_queued_writes") == 0)) {
        Py_XSETREF(known, Py_NewRef(name));
    }
    return name == known;
}

static lc_uvloop_work work_of_plain_handle(const uint64_t *fields, bool proven)
{
    PyObject *name = (PyObject *)(uintptr_t)fields[HANDLE_NAME];
    const bool is_plain = (uint32_t)fields[HANDLE_TYPE] == PLAIN_CALLBACK;
    if (!is_plain && !proven) { /* it may be what is left of an older one on the stack */
        return (lc_uvloop_work){.role = LC_UVLOOP_UNKNOWN};
    }
    if (!is_plain && runs_others(name)) {
        return (lc_uvloop_work){.role = LC_UVLOOP_INNER};
    }
    return (lc_uvloop_work){
        .role = LC_UVLOOP_CALLBACK,
        .callable = is_plain ? (PyObject *)(uintptr_t)fields[HANDLE_FIRST] : name,
        .proven = proven,
    };
}

/* `fields`: of a handle or timer, from its context on. */
static lc_uvloop_work work_of(const lc_cpython_source *source, holding holds, const uint64_t *fields, bool proven)
{
    return holds == HOLDS_TIMER ? work_of_timer(source, fields, proven) : work_of_plain_handle(fields, proven);
}

/* What a word that may be a handle says. It is read carefully, at each call: where the code holds it was learned and not
 * told, and what lies there at another of the code's ways may be anything. A handle that is over has let go of its context,
 * so one that has this context is alive, and so is what it holds, for as long as the GIL is held. */
static lc_uvloop_work work_of_handle(const lc_cpython_source *source, holding holds, uintptr_t handle,
                                     const PyObject *context, bool is_learned)
{
    const PyTypeObject *type = holds == HOLDS_HANDLE ? uvloop.handle : uvloop.timer;
    object_words object;
    if (handle % 8u != 0 || handle < 4096u || handle >> 47 != 0 ||
        !read_object(source, handle, (size_t)type->tp_basicsize, &object) ||
        object.words[1] != (uint64_t)(uintptr_t)type || (uint32_t)object.words[0] == 0) {
        return (lc_uvloop_work){.role = LC_UVLOOP_UNKNOWN};
    }
    const uint32_t place = context_place(&object, context);
    /* What kind of words its fields are was seen while its place was learned: the type's fields do not move. */
    const bool fits = is_learned              ? has_room(holds, &object, place)
                      : holds == HOLDS_HANDLE ? is_handle(source, &object, place)
                                              : is_timer(source, &object, place);
    if (place == 0 || !fits) {
        return (lc_uvloop_work){.role = LC_UVLOOP_UNKNOWN};
    }
    return work_of(source, holds, &object.words[place], is_learned);
}

lc_uvloop_work lc_uvloop_find_work(const lc_cpython_source *source, PyObject *context, const uintptr_t *words,
                                   const PyObject *outer)
{
    call_site *site = site_of(words[LC_UVLOOP_RETURN]);
    const bool is_learned = site != NULL && site->is_learned;
    uintptr_t found = 0;
    if (__builtin_expect(is_learned, 1)) {
        found = words[site->index];
    } else if (site != NULL && site->fresh_starts < FRESH_STARTS_MAX && site->calls < CALLS_TO_DOUBT) {
        found = learn(source, site, context, words, outer);
    }
    if (found == 0) {
        return (lc_uvloop_work){.role = LC_UVLOOP_UNKNOWN};
    }
    const holding holds = (holding)site->holds;
    if (holds == HOLDS_CALLABLE) {
        /* Whether it is alive is nowhere to be seen: only the watchdog looks at it, as carefully as at all. */
        return (lc_uvloop_work){.role = LC_UVLOOP_CALLBACK, .callable = (PyObject *)found, .proven = false};
    }
    lc_uvloop_work work = work_of_handle(source, holds, found, context, is_learned);
    work.handle = work.role == LC_UVLOOP_UNKNOWN ? NULL : (PyObject *)found;
    return work;
}

void lc_uvloop_work_of_types(PyTypeObject *handle, PyTypeObject *timer)
{
    if (uvloop.handle != handle || uvloop.timer != timer) {
        memset(uvloop.sites, 0, sizeof uvloop.sites);
        Py_XSETREF(uvloop.handle, (PyTypeObject *)Py_NewRef(handle));
        Py_XSETREF(uvloop.timer, (PyTypeObject *)Py_NewRef(timer));
    }
}
