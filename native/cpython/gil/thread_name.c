/* The name of a thread, as `threading` has it. The outermost frame of its threads is Thread._bootstrap, whose first
 * argument is the Thread, whose attribute `_name` is the name. */
#include "cpython/gil/threads.h"
#include "cpython/objects/attributes.h"
#include "cpython/walker/frame_values.h"
#include "cpython/walker/walker.h"

enum { TRIES = 4 };

/* The Thread whose frame this is, 0 none. */
static uint64_t thread_of(const lc_cpython_source *source, const lc_raw_frame *frame)
{
    lc_frame_shape shape;
    uint64_t self = 0;
    return lc_frame_shape_read(source, frame, &shape) && shape.locals > 0 &&
                   lc_str_is(source, shape.qualname, "Thread._bootstrap") &&
                   lc_frame_slots_read(source, frame, 0, 1, &self)
               ? self
               : 0;
}

/* The Thread that began the thread's frames, 0 none. A thread that runs moves its inner frames while they are read. */
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
    return i > 0 ? thread_of(source, &chain->frames[i - 1]) : 0;
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
    return outermost_thread(source, thread_state) == self && lc_thread_words_read(source, thread_state, &words) &&
                   words.tid == tid
               ? text
               : (lc_text){0};
}
