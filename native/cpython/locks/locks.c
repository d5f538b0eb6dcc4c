#include "cpython/locks/locks.h"

#include "cpython/locks/lock_search.h"
#include "cpython/objects/objects.h"
#include "cpython/gil/threads.h"
#include "cpython/walker/walker.h"

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
} search;

static lc_lock_proof proof_of(lc_cpython_source *source, search *s, uint64_t thread_state)
{
    if (s->owner != 0) {
        return ident_of(source, thread_state) == s->owner ? LC_PROOF_OWNER : LC_PROOF_NONE;
    }
    if (s->lock->kind == LC_LOCK_PLAIN && ends_by(source, thread_state, s->lock->object)) {
        return LC_PROOF_OWNER;
    }
    if (s->lock->kind != LC_LOCK_PLAIN && s->lock->kind != LC_LOCK_MODULE) {
        return LC_PROOF_NONE;
    }
    return lc_lock_is_held_by(source, s->lock, thread_state, &s->frame_budget) ? LC_PROOF_WITH : LC_PROOF_NONE;
}

static void take(lc_cpython_source *source, uint64_t thread_state, lc_lock_proof proof, lc_lock_view *out)
{
    lc_thread_words words;
    if (proof == LC_PROOF_NONE || !lc_thread_words_read(source, thread_state, &words) || words.tid == 0) {
        return;
    }
    out->proof = proof;
    out->holder_thread_state = thread_state;
    out->holder_tid = words.tid;
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
            return;
        }
        take(source, threads[i].thread_state, proof, out);
        if (out->proof == LC_PROOF_OWNER) {
            return; /* there is no other */
        }
    }
}

/* What the lock itself says: 0 where it does not, or is free at this moment. */
static uint64_t owner_of(const lc_cpython_source *source, const lc_found_lock *lock)
{
    const lc_layout *l = &source->layout;
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

void lc_lock(lc_cpython_source *source, const lc_lock_question *question, lc_lock_view *out)
{
    lc_found_lock lock;
    *out = (lc_lock_view){.kind = LC_LOCK_NONE};
    if (!source->locks.learned || !lc_lock_waited_for(source, question->thread_state, question->futex, &lock)) {
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
        take(source, question->known_holder, proof_of(source, &s, question->known_holder), out);
    }
    if (out->proof == LC_PROOF_NONE && (question->search || s.owner != 0)) {
        search_all(source, question->thread_state, &s, out);
    }
    if (lock.kind == LC_LOCK_PLAIN && out->proof == LC_PROOF_OWNER) {
        out->kind = LC_LOCK_THREAD;
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
