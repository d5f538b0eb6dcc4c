#include "uvloop_work.h"

#include <string.h>

#define SITES_MAX 32u
#define CALLS_TO_LEARN 3u   /* from one place, with one word left */
#define CHANGES_TO_LEARN 8u /* of the object, with several words left that were the same one each time */
#define CALLS_TO_DOUBT 64u  /* after which no more words are ruled out */
#define FRESH_STARTS_MAX 4u

_Static_assert(LC_UVLOOP_WORDS <= 64, "candidates are bits of a word");

typedef enum { HOLDS_HANDLE, HOLDS_TIMER, HOLDS_CALLABLE } holding;

/* A place in uvloop's code that enters contexts. */
typedef struct {
    uintptr_t return_address; /* 0: free */
    uint64_t candidates;      /* the words that have fitted each time */
    uintptr_t agreed;         /* the object that all candidates were at the last call */
    uint32_t calls;
    uint32_t changes; /* of `agreed` */
    bool is_ambiguous; /* the candidates were different objects once */
    uint8_t holds; /* holding */
    uint8_t index; /* of the word, once it is learned */
    bool is_learned;
    uint8_t fresh_starts;
} call_site;

static struct {
    PyTypeObject *types[HOLDS_CALLABLE];
    call_site sites[SITES_MAX];
} uvloop;

lc_uvloop_place lc_uvloop_last_place;

static lc_uvloop_type type_of(holding holds)
{
    const PyTypeObject *type = uvloop.types[holds];
    return (lc_uvloop_type){(uint64_t)(uintptr_t)type, (uint64_t)type->tp_basicsize};
}

lc_uvloop_type lc_uvloop_handle_type(void) { return type_of(HOLDS_HANDLE); }

static PyTypeObject *type_of_address(const lc_cpython_source *source, uintptr_t address)
{
    struct {
        uint64_t count, type;
    } head;
    _Static_assert(offsetof(PyObject, ob_type) == 8, "the head of an object");
    if (address % 8u != 0 || address < 4096u || address >> 48 != 0 ||
        !lc_read(source->reader, address, &head, sizeof head)) {
        return NULL;
    }
    return (PyTypeObject *)(uintptr_t)head.type;
}

/* ---- the handles' fields ----------------------------------------------------------------- */

static bool read_object(const lc_cpython_source *source, holding holds, uintptr_t address, const PyObject *context,
                        lc_uvloop_object *out)
{
    return lc_uvloop_read(source, address, type_of(holds), (uint64_t)(uintptr_t)context, out);
}

/* Whether the object's fields are the ones that they are taken for: each is believed only where it is of the kind that it
 * has to be. The type's fields do not move: once is enough. */
static bool is_handle(const lc_cpython_source *source, const lc_uvloop_object *handle)
{
    lc_uvloop_call call;
    if (!lc_uvloop_call_of(handle, &call)) {
        return false;
    }
    const uint64_t name = handle->words[handle->context + LC_UVLOOP_NAME];
    return name == (uint64_t)(uintptr_t)Py_None || type_of_address(source, name) == &PyUnicode_Type;
}

static bool has_room_for_timer(const lc_uvloop_object *timer)
{
    return timer->context >= 2u + (uint32_t)-LC_UVLOOP_TIMER_CALLBACK &&
           timer->context + LC_UVLOOP_TIMER_WHEN < timer->count;
}

static bool is_timer(const lc_cpython_source *source, const lc_uvloop_object *timer)
{
    if (!has_room_for_timer(timer)) {
        return false;
    }
    const uint64_t arguments = timer->words[timer->context + (uint32_t)LC_UVLOOP_TIMER_ARGUMENTS];
    return arguments == (uint64_t)(uintptr_t)Py_None || type_of_address(source, arguments) == &PyTuple_Type;
}

static bool is_callable(const lc_cpython_source *source, const PyTypeObject *type)
{
    return type == &PyMethod_Type || type == &PyFunction_Type || type == &PyCFunction_Type ||
           (uint64_t)(uintptr_t)type == source->asyncio.partial_type;
}

/* ---- learning ---------------------------------------------------------------------------- */

/* Whether the word is an object that a place of the code could be about; what it then holds. */
static bool fits(const lc_cpython_source *source, uintptr_t word, const PyObject *context, holding *holds)
{
    lc_uvloop_object object;
    const PyTypeObject *type = word == (uintptr_t)context ? NULL : type_of_address(source, word);
    if (type == NULL) {
        return false;
    }
    if (type == uvloop.types[HOLDS_HANDLE]) {
        *holds = HOLDS_HANDLE;
        return read_object(source, HOLDS_HANDLE, word, context, &object) && is_handle(source, &object);
    }
    if (type == uvloop.types[HOLDS_TIMER]) {
        *holds = HOLDS_TIMER;
        return read_object(source, HOLDS_TIMER, word, context, &object) && is_timer(source, &object);
    }
    *holds = HOLDS_CALLABLE;
    return is_callable(source, type);
}

static void start_afresh(call_site *site)
{
    lc_uvloop_last_place.return_address = 0;
    site->is_learned = false;
    site->is_ambiguous = false;
    site->calls = 0;
    site->changes = 0;
    site->agreed = 0;
    site->candidates = 0;
    site->fresh_starts++;
}

/* The words that fit at this call. Handles count before callables: a handle's callback may lie beside it. */
static uint64_t look_at_words(const lc_cpython_source *source, const call_site *site, const PyObject *context,
                              const uintptr_t *words, holding *holds)
{
    uint64_t fitting[3] = {0};
    for (uint32_t i = 0; i < LC_UVLOOP_WORDS; i++) {
        holding each;
        const bool is_out = site->calls > 0 && (site->candidates >> i & 1u) == 0;
        if (i != LC_UVLOOP_RETURN && !is_out && fits(source, words[i], context, &each)) {
            fitting[each] |= UINT64_C(1) << i;
        }
    }
    *holds = site->calls > 0       ? (holding)site->holds
             : fitting[HOLDS_HANDLE] ? HOLDS_HANDLE
             : fitting[HOLDS_TIMER]  ? HOLDS_TIMER
                                     : HOLDS_CALLABLE;
    return fitting[*holds];
}

/* What all candidates are at this call; 0: different objects. */
static uintptr_t agree(uint64_t candidates, const uintptr_t *words)
{
    const uintptr_t first = words[__builtin_ctzll(candidates)];
    for (uint64_t rest = candidates; rest != 0; rest &= rest - 1u) {
        if (words[__builtin_ctzll(rest)] != first) {
            return 0;
        }
    }
    return first;
}

/* The word that the caller itself will use is among the candidates. Where it is the only one, it is that; where several have
 * followed each other from object to object, one is as good as another: copies that the compiler keeps. The lowest is a
 * register, or nearest to the call. */
static uintptr_t settle(call_site *site, const uintptr_t *words)
{
    const uint64_t candidates = site->candidates;
    const uintptr_t object = agree(candidates, words);
    site->is_ambiguous = site->is_ambiguous || (object == 0 && site->calls >= CALLS_TO_DOUBT);
    site->changes = object == 0 ? 0 : site->changes + (object != site->agreed);
    site->agreed = object;
    const bool is_only = (candidates & (candidates - 1u)) == 0;
    if (is_only ? site->calls >= CALLS_TO_LEARN : site->changes > CHANGES_TO_LEARN) {
        site->index = (uint8_t)__builtin_ctzll(candidates);
        site->is_learned = true;
    }
    return object;
}

/* The object at this call, 0 where it cannot be told. Words are read as objects for a while; then they are only compared. */
static uintptr_t learn(const lc_cpython_source *source, call_site *site, const PyObject *context,
                       const uintptr_t *words)
{
    if (site->calls < CALLS_TO_DOUBT) {
        holding holds;
        const uint64_t fitting = look_at_words(source, site, context, words, &holds);
        if (fitting == 0) {
            start_afresh(site);
            return 0;
        }
        site->holds = (uint8_t)holds;
        site->candidates = fitting;
        site->calls++;
    }
    return site->is_ambiguous ? 0 : settle(site, words);
}

static call_site *site_of(uintptr_t return_address)
{
    for (uint32_t i = 0; i < SITES_MAX; i++) {
        call_site *site = &uvloop.sites[i];
        if (site->return_address == return_address || site->return_address == 0) {
            site->return_address = return_address;
            return site;
        }
    }
    return NULL;
}

/* ---- reading ----------------------------------------------------------------------------- */

static double due_of(const lc_cpython_source *source, uint64_t when)
{
    PyFloatObject value;
    return when % 8u == 0 && lc_read(source->reader, when, &value, sizeof value) && Py_IS_TYPE(&value, &PyFloat_Type)
               ? value.ob_fval
               : 0;
}

static lc_uvloop_work work_of_timer(const lc_cpython_source *source, const lc_uvloop_object *timer, bool is_learned)
{
    const uint64_t *fields = &timer->words[timer->context];
    return (lc_uvloop_work){
        .role = LC_UVLOOP_CALLBACK,
        .callable = (PyObject *)(uintptr_t)fields[LC_UVLOOP_TIMER_CALLBACK],
        .due_s = due_of(source, fields[LC_UVLOOP_TIMER_WHEN]),
        .proven = is_learned,
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

static lc_uvloop_work work_of_plain_handle(const lc_uvloop_object *handle, bool is_learned)
{
    lc_uvloop_call call;
    if (!lc_uvloop_call_of(handle, &call)) {
        return (lc_uvloop_work){.role = LC_UVLOOP_UNKNOWN};
    }
    if (!call.is_plain && !is_learned) { /* it may be what is left of an older one on the stack */
        return (lc_uvloop_work){.role = LC_UVLOOP_UNKNOWN};
    }
    PyObject *name = (PyObject *)(uintptr_t)call.name;
    if (!call.is_plain && runs_others(name)) {
        return (lc_uvloop_work){.role = LC_UVLOOP_INNER};
    }
    return (lc_uvloop_work){
        .role = LC_UVLOOP_CALLBACK,
        .callable = call.is_plain ? (PyObject *)(uintptr_t)call.callable : name,
        .proven = is_learned,
    };
}

/* What a word that may be a handle says. One that has this context and runs is alive, and so is what it holds, for as long
 * as the GIL is held. */
static lc_uvloop_work work_of_handle(const lc_cpython_source *source, holding holds, uintptr_t handle,
                                     const PyObject *context, bool is_learned)
{
    lc_uvloop_object object;
    if (!read_object(source, holds, handle, context, &object)) {
        return (lc_uvloop_work){.role = LC_UVLOOP_UNKNOWN};
    }
    if (holds == HOLDS_HANDLE) {
        return is_learned || is_handle(source, &object) ? work_of_plain_handle(&object, is_learned)
                                                        : (lc_uvloop_work){.role = LC_UVLOOP_UNKNOWN};
    }
    return (is_learned ? has_room_for_timer(&object) : is_timer(source, &object))
               ? work_of_timer(source, &object, is_learned)
               : (lc_uvloop_work){.role = LC_UVLOOP_UNKNOWN};
}

lc_uvloop_held lc_uvloop_find_other_held(const uintptr_t *words)
{
    const call_site *site = site_of(words[LC_UVLOOP_RETURN]);
    if (site == NULL || !site->is_learned || site->holds == HOLDS_TIMER) {
        return (lc_uvloop_held){0, false};
    }
    const bool is_method = site->holds == HOLDS_CALLABLE;
    lc_uvloop_last_place = (lc_uvloop_place){site->return_address, site->index, is_method};
    return (lc_uvloop_held){words[site->index], is_method};
}

lc_uvloop_work lc_uvloop_find_work(const lc_cpython_source *source, PyObject *context, const uintptr_t *words)
{
    call_site *site = site_of(words[LC_UVLOOP_RETURN]);
    const bool is_learned = site != NULL && site->is_learned;
    uintptr_t found = 0;
    if (__builtin_expect(is_learned, 1)) {
        found = words[site->index];
    } else if (site != NULL && site->fresh_starts < FRESH_STARTS_MAX) {
        found = learn(source, site, context, words);
    }
    if (found == 0 && !is_learned) {
        return (lc_uvloop_work){.role = LC_UVLOOP_UNKNOWN};
    }
    const holding holds = (holding)site->holds;
    if (holds == HOLDS_CALLABLE) {
        /* Whether it is alive is nowhere to be seen: only the watchdog looks at it, as carefully as at all. */
        return (lc_uvloop_work){.role = LC_UVLOOP_CALLBACK, .callable = (PyObject *)found, .proven = false};
    }
    const lc_uvloop_work work = work_of_handle(source, holds, found, context, is_learned);
    if (work.role == LC_UVLOOP_UNKNOWN && is_learned) {
        start_afresh(site); /* where the code holds it, it is each time: this was not it */
    }
    return work;
}

void lc_uvloop_work_of_types(PyTypeObject *handle, PyTypeObject *timer)
{
    if (uvloop.types[HOLDS_HANDLE] != handle || uvloop.types[HOLDS_TIMER] != timer) {
        memset(uvloop.sites, 0, sizeof uvloop.sites);
        lc_uvloop_last_place.return_address = 0;
        Py_XSETREF(uvloop.types[HOLDS_HANDLE], (PyTypeObject *)Py_NewRef(handle));
        Py_XSETREF(uvloop.types[HOLDS_TIMER], (PyTypeObject *)Py_NewRef(timer));
    }
}
