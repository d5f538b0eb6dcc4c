#include "cpython/gil/threads.h"

#include "cpython/objects/attributes.h"
#include "cpython/walker/frame_values.h"
#include "cpython/walker/snapshot.h"
#include "cpython/walker/walker.h"

bool lc_interp_known(const lc_cpython_source *source, uint64_t interp)
{
    if (interp == 0 || interp == source->at.interp) {
        return interp != 0;
    }
    const lc_layout *l = &source->layout;
    uint64_t each = 0;
    bool readable = lc_read(source->reader, source->at.runtime + l->runtime_interpreters, &each, 8);
    for (uint32_t i = 0; i < LC_INTERPRETERS_MAX && readable && each != 0; i++) {
        if (each == interp) {
            return true;
        }
        readable = lc_read(source->reader, each + l->interp_next, &each, 8);
    }
    return false;
}

bool lc_thread_words_read(const lc_cpython_source *source, uint64_t thread_state, lc_thread_words *words)
{
    const lc_layout *l = &source->layout;
    uint8_t header[LC_THREAD_HEADER_MAX];
    if (thread_state == 0 || thread_state % 8 != 0 ||
        !lc_read(source->reader, thread_state, header, l->thread_native_id + 8)) {
        return false;
    }
    *words = lc_thread_words_in(l, header);
    return lc_interp_known(source, words->interp);
}

lc_thread_words lc_thread_words_in(const lc_layout *layout, const uint8_t *header)
{
    return (lc_thread_words){
        .next = lc_u64_at(header, layout->thread_next),
        .interp = lc_u64_at(header, layout->thread_interp),
        .tid = (uint32_t)lc_u64_at(header, layout->thread_native_id),
    };
}

uint32_t lc_threads_of(const lc_cpython_source *source, uint64_t interp, lc_thread_ref *out, uint32_t room)
{
    lc_thread_words words;
    uint64_t each = 0;
    uint32_t count = 0;
    if (!lc_read(source->reader, interp + source->layout.interp_threads, &each, 8)) {
        return 0;
    }
    /* Threads come and go while the list is followed: a freed one ends the walk if it no longer
     * looks like a thread of this interpreter, and the bound ends it in any case. */
    for (uint32_t i = 0; i < LC_THREADS_MAX && each != 0 && count < room; i++) {
        if (!lc_thread_words_read(source, each, &words) || words.interp != interp) {
            break;
        }
        if (words.tid != 0) { /* 0: made, not yet started */
            out[count++] = (lc_thread_ref){.thread_state = each, .tid = words.tid};
        }
        if (words.next == each) {
            break;
        }
        each = words.next;
    }
    return count;
}

uint32_t lc_threads(lc_cpython_source *source, uint64_t thread_state, lc_thread_ref *out, uint32_t room)
{
    lc_thread_words words = {.interp = source->at.interp};
    const bool is_known = thread_state == 0 || lc_thread_words_read(source, thread_state, &words);
    return is_known ? lc_threads_of(source, words.interp, out, room) : 0;
}

/* Of this interpreter's threads the one with this number, 0 none. As in lc_threads_of the list may change
 * meanwhile. */
static uint64_t thread_of(const lc_cpython_source *source, uint64_t interp, uint64_t tid)
{
    lc_thread_words words;
    uint64_t each = 0;
    bool readable = lc_read(source->reader, interp + source->layout.interp_threads, &each, 8);
    for (uint32_t i = 0; i < LC_THREADS_MAX && readable && each != 0; i++) {
        readable = lc_thread_words_read(source, each, &words) && words.interp == interp;
        if (readable && words.tid == tid) {
            return each;
        }
        each = words.next;
    }
    return 0;
}

uint64_t lc_thread_state(const lc_cpython_source *source, uint64_t tid)
{
    const lc_layout *l = &source->layout;
    uint64_t each = 0, found = 0;
    bool readable = lc_read(source->reader, source->at.runtime + l->runtime_interpreters, &each, 8);
    for (uint32_t i = 0; i < LC_INTERPRETERS_MAX && readable && each != 0 && found == 0; i++) {
        found = thread_of(source, each, tid);
        readable = lc_read(source->reader, each + l->interp_next, &each, 8);
    }
    return found;
}

/* ---- names ----------------------------------------------------------------------------------------
 *
 * The name of a thread, as `threading` has it. The outermost frame of its threads is Thread._bootstrap,
 * whose first argument is the Thread, whose attribute `_name` is the name. */

enum { TRIES = 4 };

static uint64_t thread_in(const lc_cpython_source *source, const lc_raw_frame *frame)
{
    lc_frame_shape shape;
    uint64_t self = 0;
    return lc_frame_shape_read(source, frame, &shape) && shape.locals > 0 &&
                   lc_str_is(source, shape.qualname, "Thread._bootstrap") &&
                   lc_frame_slots_read(source, frame, 0, 1, &self)
               ? self
               : 0;
}

/* The Thread that began the thread's frames, 0 none. A thread that runs moves its inner frames while they
 * are read. */
static uint64_t outermost_thread(lc_cpython_source *source, uint64_t thread_state)
{
    const lc_chain *chain = NULL;
    for (int i = 0; i < TRIES && chain == NULL; i++) {
        chain = lc_chain_of_thread(source, thread_state, LC_WALK_FRAMES_MAX);
    }
    uint32_t i = chain == NULL || chain->cut ? 0 : chain->count;
    while (i > 0 && chain->frames[i - 1].shim) {
        i--;
    }
    return i > 0 ? thread_in(source, &chain->frames[i - 1]) : 0;
}

lc_text lc_thread_name(lc_cpython_source *source, uint64_t thread_state, uint64_t tid)
{
    lc_thread_words words;
    lc_frame_source *seam = &source->source;
    const uint64_t self = outermost_thread(source, thread_state);
    if (self == 0) {
        return (lc_text){0};
    }
    const uint64_t name = lc_attribute(source, self, "_name");
    const lc_text text = name == 0 ? (lc_text){0} : seam->text(seam, name);
    /* Again: a thread may end while it is read, and its memory become another's. */
    return outermost_thread(source, thread_state) == self &&
                   lc_thread_words_read(source, thread_state, &words) && words.tid == tid
               ? text
               : (lc_text){0};
}
