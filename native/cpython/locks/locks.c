#include "cpython/locks/locks.h"

#include <string.h>

#include "cpython/gil/threads.h"
#include "cpython/locks/lock_parts.h"
#include "cpython/objects/attributes.h"
#include "cpython/objects/objects.h"
#include "cpython/walker/walker.h"

enum { FRAMES_EACH = 96 /* from the innermost one: blocks further out are not found */ };

/* ---- a condition ------------------------------------------------------------------------------------ */

static bool is_lock(const lc_cpython_source *source, uint64_t object)
{
    const uint64_t type = object == 0 ? 0 : lc_type_at(source, object);
    return type != 0 &&
           (type == source->locks.types[LC_TYPE_LOCK] || type == source->locks.types[LC_TYPE_RLOCK]);
}

static uint64_t lock_of_condition(lc_cpython_source *source, uint64_t condition)
{
    const uint64_t lock = lc_attribute(source, condition, "_lock");
    return is_lock(source, lock) ? lock : 0;
}

/* A condition lets go of its lock while it waits, in the middle of a block. Whether the thread waits so
 * for this lock, or for one that cannot be told. */
static bool waits_in_condition(lc_cpython_source *source, const lc_chain *chain, uint32_t outer,
                               uint64_t lock)
{
    for (uint32_t i = 0; i < outer; i++) {
        lc_frame_shape shape;
        uint64_t self;
        if (chain->frames[i].shim || !lc_frame_shape_read(source, &chain->frames[i], &shape) ||
            !lc_str_is(source, shape.qualname, "Condition.wait")) {
            continue;
        }
        const uint64_t its =
            lc_frame_slots_read(source, &chain->frames[i], 0, 1, &self) ? lock_of_condition(source, self) : 0;
        if (its == 0 || its == lock) {
            return true;
        }
    }
    return false;
}

/* ---- an import ------------------------------------------------------------------------------------- */

static bool same_text(const lc_cpython_source *source, uint64_t a, uint64_t b)
{
    char bytes[LC_STRING_MAX];
    char others[LC_STRING_MAX];
    lc_str_value first = {.bytes = bytes};
    lc_str_value second = {.bytes = others};
    return lc_read_str(source, a, source->walker->scratch, &first) &&
           lc_read_str(source, b, source->walker->scratch, &second) && first.length == second.length &&
           memcmp(bytes, others, first.length) == 0;
}

/* A thread that runs _find_and_load_unlocked for a module holds its lock, as the name says. */
static bool loads_module(const lc_cpython_source *source, const lc_chain *chain, uint32_t i, uint64_t module)
{
    lc_frame_shape shape;
    uint64_t name;
    return lc_frame_shape_read(source, &chain->frames[i], &shape) &&
           lc_is_bootstrap(source, &shape, "_find_and_load_unlocked") &&
           lc_frame_slots_read(source, &chain->frames[i], 0, 1, &name) && same_text(source, name, module);
}

/* ---- proofs ---------------------------------------------------------------------------------------- */

typedef struct {
    uint64_t address; /* 0 none */
    uint8_t number;   /* from the outermost frame on, from 1; 0 not known */
} proving_frame;

static proving_frame frame_at(const lc_chain *chain, uint32_t i)
{
    proving_frame found = {.address = chain->frames[i].address};
    uint32_t outer = 0;
    for (uint32_t j = i; j < chain->count; j++) {
        outer += !chain->frames[j].shim;
    }
    if (!chain->cut && outer <= UINT8_MAX) {
        found.number = (uint8_t)outer;
    }
    return found;
}

static bool is_recursive(lc_lock_kind kind)
{
    return kind == LC_LOCK_RECURSIVE || kind == LC_LOCK_SHARED_RECURSIVE;
}

static int type_of(lc_lock_kind kind)
{
    return lc_is_semlock(kind) ? LC_TYPE_SEMLOCK : kind == LC_LOCK_RECURSIVE ? LC_TYPE_RLOCK : LC_TYPE_LOCK;
}

/* The frame that proves it; of an RLock, which may be taken again in inner blocks, the outermost. */
static proving_frame proof(lc_cpython_source *source, const lc_found_lock *lock, uint64_t thread_state,
                           uint32_t *frame_budget)
{
    const lc_chain *chain = lc_chain_of_thread(source, thread_state, FRAMES_EACH);
    proving_frame found = {0};
    for (uint32_t i = 0; chain != NULL && i < chain->count && *frame_budget > 0; i++) {
        if (chain->frames[i].shim) {
            continue;
        }
        (*frame_budget)--;
        const bool holds = lock->kind == LC_LOCK_MODULE
                               ? loads_module(source, chain, i, lock->module)
                               : lc_is_in_with(source, &chain->frames[i], lock->object, type_of(lock->kind));
        if (!holds) {
            continue;
        }
        if (lock->kind == LC_LOCK_PLAIN && waits_in_condition(source, chain, i, lock->object)) {
            return (proving_frame){0};
        }
        found = frame_at(chain, i);
        if (!is_recursive(lock->kind)) {
            break;
        }
    }
    return found;
}

/* The frame of the thread's `with` block of the lock, or that loads the module. */
static proving_frame proving(lc_cpython_source *source, const lc_found_lock *lock, uint64_t thread_state,
                             uint32_t *frame_budget)
{
    /* Twice: a frame may end while it is read, and its memory be used for another. A thread that holds the
     * lock keeps its frame. */
    const proving_frame first = proof(source, lock, thread_state, frame_budget);
    if (first.address != 0 && proof(source, lock, thread_state, frame_budget).address == first.address) {
        return first;
    }
    return (proving_frame){0};
}

static uint64_t ident_of(const lc_cpython_source *source, uint64_t thread_state)
{
    return thread_state == 0 ? 0 : lc_word_at(source, thread_state + source->layout.thread_ident);
}

/* Whether the thread's end is what the lock waits for: 3.11 and 3.12 keep a weak reference to the lock that a
 * thread lets go of last of all (Modules/_threadmodule.c, thread_PyThread__set_sentinel). */
static bool ends_by(const lc_cpython_source *source, uint64_t thread_state, uint64_t lock)
{
    const lc_layout *l = &source->layout;
    if (l->thread_end_data == LC_ABSENT) {
        return false;
    }
    const uint64_t reference = lc_word_at(source, thread_state + l->thread_end_data);
    return reference != 0 && lc_type_at(source, reference) == source->locks.types[LC_TYPE_REFERENCE] &&
           lc_word_at(source, reference + l->weakref_object) == lock;
}

typedef struct {
    const lc_found_lock *lock;
    uint64_t owner; /* ident of the thread that owns it by the lock's own word, 0 none */
    uint32_t frame_budget;
    uint8_t frame; /* of the last proof, as in lc_lock_view */
} search;

/* Of a Lock between processes the thread that it names has acquired it; but any process may have released
 * it since, as the place of a queue. Only the thread's `with` block says that it is the holder. */
static bool is_proven_by_frame(const search *s)
{
    const lc_lock_kind kind = s->lock->kind;
    return kind == LC_LOCK_PLAIN || kind == LC_LOCK_MODULE || (kind == LC_LOCK_SHARED && s->owner != 0);
}

static lc_lock_proof proof_of(lc_cpython_source *source, search *s, uint64_t thread_state)
{
    const lc_lock_kind kind = s->lock->kind;
    s->frame = 0;
    if (s->owner != 0 && ident_of(source, thread_state) != s->owner) {
        return LC_PROOF_NONE;
    }
    if (s->owner != 0 && kind != LC_LOCK_SHARED) {
        if (is_recursive(kind)) {
            s->frame = proving(source, s->lock, thread_state, &s->frame_budget).number;
        }
        return LC_PROOF_OWNER;
    }
    if (kind == LC_LOCK_PLAIN && ends_by(source, thread_state, s->lock->object)) {
        return LC_PROOF_OWNER;
    }
    if (!is_proven_by_frame(s)) {
        return LC_PROOF_NONE;
    }
    const proving_frame found = proving(source, s->lock, thread_state, &s->frame_budget);
    s->frame = kind != LC_LOCK_MODULE ? found.number : 0;
    return found.address != 0 ? LC_PROOF_WITH : LC_PROOF_NONE;
}

static void take(lc_cpython_source *source, const search *s, uint64_t thread_state, lc_lock_proof proof,
                 lc_lock_view *out)
{
    lc_thread_words words;
    if (proof == LC_PROOF_NONE || !lc_thread_words_read(source, thread_state, &words) || words.tid == 0) {
        return;
    }
    out->proof = proof;
    out->holder_thread_state = thread_state;
    out->holder_tid = words.tid;
    out->frame = s->frame;
}

/* Two that seem to hold it are one too many: then it is not known. */
static void search_all(lc_cpython_source *source, uint64_t waiting, search *s, lc_lock_view *out)
{
    lc_thread_ref threads[LC_LOCK_THREADS_MAX];
    const uint32_t count = lc_threads(source, waiting, threads, LC_LOCK_THREADS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        const lc_lock_proof proof = proof_of(source, s, threads[i].thread_state);
        if (proof != LC_PROOF_NONE && out->proof != LC_PROOF_NONE) {
            out->proof = LC_PROOF_NONE;
            out->holder_thread_state = 0;
            out->holder_tid = 0;
            out->frame = 0;
            return;
        }
        take(source, s, threads[i].thread_state, proof, out);
        if (out->proof == LC_PROOF_OWNER) {
            return; /* there is no other */
        }
    }
}

/* What the lock itself says: 0 where it does not, or is free at this moment. */
static uint64_t owner_of(const lc_cpython_source *source, const lc_found_lock *lock)
{
    const lc_layout *l = &source->layout;
    if (lc_is_semlock(lock->kind)) {
        return lc_semlock_owner(source, lock->object, lock->kind);
    }
    if (lock->kind == LC_LOCK_RECURSIVE) {
        return lc_word_at(source, lock->object + l->rlock_owner);
    }
    if (lock->kind == LC_LOCK_THREAD) {
        return lc_word_at(source, lc_word_at(source, lock->object + l->handle_pointer) + l->handle_ident);
    }
    return 0;
}

static void name_module(lc_cpython_source *source, uint64_t name, lc_lock_view *out)
{
    lc_str_value value = {.bytes = source->walker->module};
    if (lc_read_str(source, name, source->walker->scratch, &value)) {
        out->module = (lc_text){value.bytes, value.length};
    }
}

/* Twice, as `proving`. */
static bool sets(lc_cpython_source *source, uint64_t future, uint64_t thread_state)
{
    return lc_future_comes_from(source, future, thread_state) &&
           lc_future_comes_from(source, future, thread_state);
}

static void look_for_result(lc_cpython_source *source, const lc_lock_question *question, lc_lock_view *out)
{
    lc_thread_ref threads[LC_LOCK_THREADS_MAX];
    const uint64_t future = lc_future_waited_for(source, question->thread_state);
    const search none = {.frame = 0};
    if (future == 0) {
        return;
    }
    uint64_t found = question->known_holder;
    if (found == 0 || !sets(source, future, found)) {
        found = 0;
        const uint32_t count =
            question->search ? lc_threads(source, question->thread_state, threads, LC_LOCK_THREADS_MAX) : 0;
        for (uint32_t i = 0; i < count && found == 0; i++) {
            found = sets(source, future, threads[i].thread_state) ? threads[i].thread_state : 0;
        }
    }
    take(source, &none, found, found != 0 ? LC_PROOF_OWNER : LC_PROOF_NONE, out);
    if (out->proof == LC_PROOF_OWNER) {
        out->kind = LC_LOCK_FUTURE;
        out->object = future;
    }
}

void lc_lock(lc_cpython_source *source, const lc_lock_question *question, lc_lock_view *out)
{
    lc_found_lock lock;
    *out = (lc_lock_view){.kind = LC_LOCK_NONE};
    if (!source->locks.learned ||
        !lc_lock_waited_for(source, question->thread_state, question->futex, &lock)) {
        return;
    }
    out->kind = lock.kind;
    /* The handle of a thread has no address that its waiters sleep on. */
    const bool by_futex = source->layout.lock_semaphore != LC_ABSENT;
    out->object = by_futex && lock.kind == LC_LOCK_THREAD ? 0 : lock.object;
    if (lock.kind == LC_LOCK_MODULE) {
        name_module(source, lock.module, out);
    }
    search s = {.lock = &lock, .owner = owner_of(source, &lock), .frame_budget = LC_LOCK_FRAMES_MAX};
    if (question->known_holder != 0) {
        const lc_lock_proof proof = proof_of(source, &s, question->known_holder);
        take(source, &s, question->known_holder, proof, out);
    }
    if (out->proof == LC_PROOF_NONE && (question->search || s.owner != 0)) {
        search_all(source, question->thread_state, &s, out);
    }
    if (lock.kind == LC_LOCK_PLAIN && out->proof == LC_PROOF_OWNER) {
        out->kind = LC_LOCK_THREAD;
    }
    if (question->futures && lock.kind == LC_LOCK_PLAIN && out->proof == LC_PROOF_NONE) {
        look_for_result(source, question, out);
    }
}

bool lc_waits_for_lock(lc_cpython_source *source, uint64_t thread_state, uint64_t futex, uint64_t object)
{
    lc_found_lock lock;
    if (source->layout.lock_semaphore != LC_ABSENT) {
        return lc_sleeps_in_lock(source, object, futex);
    }
    return lc_lock_waited_for(source, thread_state, futex, &lock) && lock.object == object;
}
