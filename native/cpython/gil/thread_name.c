/* The name of a thread, as `threading` has it. The outermost frame of its threads is Thread._bootstrap, whose first
 * argument is the Thread; a name lies among its attributes. */
#include "cpython/gil/threads.h"
#include "cpython/objects/objects.h"
#include "cpython/walker/frame_values.h"
#include "cpython/walker/walker.h"

enum {
    TRIES = 4,
    VALUES_BEFORE_3_13 = 16, /* how many are looked at where it is not written down how many there are */
    VALUES_MAX = 30          /* SHARED_KEYS_MAX_SIZE, Include/internal/pycore_dict.h */
};

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

static uint64_t value_at(const lc_cpython_source *source, uint64_t values, uint32_t i)
{
    return lc_word_at(source, values + source->layout.values_first + 8u * (uint64_t)i);
}

/* 3.11, 3.12: in the order in which they were set. Thread.__init__ sets `_name`, `_args` and `_kwargs` in a row. */
static uint64_t name_in_order(const lc_cpython_source *source, uint64_t self)
{
    const lc_layout *l = &source->layout;
    const uint64_t values = lc_word_at(source, self - l->values_before) + l->values_tag;
    for (uint32_t i = 0; i + 2 < VALUES_BEFORE_3_13; i++) {
        const uint64_t name = value_at(source, values, i);
        const uint64_t args = lc_type_at(source, value_at(source, values, i + 1));
        if (lc_type_at(source, name) == source->at.str_type &&
            (args == source->at.tuple_type || args == source->at.list_type) &&
            lc_type_at(source, value_at(source, values, i + 2)) == source->at.dict_type) {
            return name;
        }
    }
    return 0;
}

/* From 3.13 on in any order: the one that is a str, if no other is. */
static uint64_t only_name(const lc_cpython_source *source, uint64_t self)
{
    const uint64_t values = self + lc_word_at(source, lc_type_at(source, self) + source->layout.type_basic_size);
    const uint32_t room = (uint32_t)(lc_word_at(source, values) & 0xFFu); /* struct _dictvalues: capacity */
    uint64_t found = 0;
    for (uint32_t i = 0; i < room && i < VALUES_MAX; i++) {
        const uint64_t value = value_at(source, values, i);
        if (value == 0 || lc_type_at(source, value) != source->at.str_type) {
            continue;
        }
        if (found != 0 && found != value) {
            return 0;
        }
        found = value;
    }
    return found;
}

lc_text lc_thread_name(lc_cpython_source *source, uint64_t thread_state, uint64_t tid)
{
    lc_thread_words words;
    lc_frame_source *seam = &source->source;
    const uint64_t self = outermost_thread(source, thread_state);
    if (self == 0) {
        return (lc_text){0};
    }
    const uint64_t name =
        source->layout.values_before != LC_ABSENT ? name_in_order(source, self) : only_name(source, self);
    const lc_text text = name == 0 ? (lc_text){0} : seam->text(seam, name);
    /* Again: a thread may end while it is read, and its memory become another's. */
    return outermost_thread(source, thread_state) == self && lc_thread_words_read(source, thread_state, &words) &&
                   words.tid == tid
               ? text
               : (lc_text){0};
}
