/* A Future has no owner. Who sets it is read from the code that does: Lib/concurrent/futures/thread.py,
 * _WorkItem.run; Lib/asyncio/tasks.py, run_coroutine_threadsafe; Lib/asyncio/futures.py, _chain_future. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stddef.h>
#include <string.h>

#include "cpython/locks/lock_parts.h"
#include "cpython/objects/attributes.h"
#include "cpython/objects/objects.h"
#include "cpython/walker/frame_values.h"
#include "cpython/walker/walker.h"

enum {
    INNER_FRAMES = 4,
    FRAMES_EACH = 96,
    CALLBACKS_MAX = 8,
    CELLS_MAX = 8,
    READY_MAX = 256,
    /* Modules/_collectionsmodule.c, dequeobject and block; known by the type's name, and by what is found
     * there. */
    DEQUE_LEFT_BLOCK = 24,
    DEQUE_LEFT_INDEX = 40,
    BLOCK_DATA = 8,
    BLOCK_ITEMS = 64
};

static uint64_t item_of(const lc_cpython_source *source, uint64_t items, uint64_t i)
{
    return lc_word_at(source, items + 8u * i);
}

static bool runs(const lc_cpython_source *source, const lc_frame_shape *shape, const char *qualname,
                 const char *file)
{
    return lc_str_is(source, shape->qualname, qualname) && lc_str_ends(source, shape->filename, file);
}

static uint64_t first_local(const lc_cpython_source *source, const lc_raw_frame *frame)
{
    uint64_t self;
    return lc_frame_slots_read(source, frame, 0, 1, &self) ? self : 0;
}

/* The first argument of the thread's innermost call of this method; 0: it is in none. */
static uint64_t self_in(lc_cpython_source *source, uint64_t thread_state, const char *qualname,
                        const char *file)
{
    const lc_chain *chain = lc_chain_of_thread(source, thread_state, FRAMES_EACH);
    for (uint32_t i = 0; chain != NULL && i < chain->count; i++) {
        lc_frame_shape shape;
        if (!chain->frames[i].shim && lc_frame_shape_read(source, &chain->frames[i], &shape) &&
            runs(source, &shape, qualname, file)) {
            return first_local(source, &chain->frames[i]);
        }
    }
    return 0;
}

static bool is_unset(lc_cpython_source *source, uint64_t future)
{
    const uint64_t state = lc_attribute(source, future, "_state");
    return lc_str_is(source, state, "PENDING") || lc_str_is(source, state, "RUNNING");
}

uint64_t lc_future_waited_for(lc_cpython_source *source, uint64_t thread_state)
{
    static const char file[] = "/concurrent/futures/_base.py";
    const lc_chain *chain = lc_chain_of_thread(source, thread_state, INNER_FRAMES);
    bool in_wait = false;
    for (uint32_t i = 0; chain != NULL && i < chain->count; i++) {
        lc_frame_shape shape;
        if (chain->frames[i].shim) {
            continue;
        }
        if (!lc_frame_shape_read(source, &chain->frames[i], &shape)) {
            return 0;
        }
        if (in_wait) {
            const bool asks =
                runs(source, &shape, "Future.result", file) || runs(source, &shape, "Future.exception", file);
            const uint64_t future = asks ? first_local(source, &chain->frames[i]) : 0;
            return future != 0 && is_unset(source, future) ? future : 0;
        }
        in_wait = runs(source, &shape, "Condition.wait", "/threading.py");
        if (!in_wait) {
            return 0;
        }
    }
    return 0;
}

/* Whether this is the function of that name, and one of its variables from outside is `object`. */
static bool encloses(const lc_cpython_source *source, uint64_t function, const char *qualname,
                     uint64_t object)
{
    if (lc_type_at(source, function) != source->at.function_type ||
        !lc_str_is(source, lc_word_at(source, function + source->layout.function_qualname), qualname)) {
        return false;
    }
    const uint64_t cells = lc_word_at(source, function + offsetof(PyFunctionObject, func_closure));
    if (lc_type_at(source, cells) != source->at.tuple_type) {
        return false;
    }
    const uint64_t count = lc_word_at(source, cells + source->layout.var_size);
    for (uint64_t i = 0; i < count && i < CELLS_MAX; i++) {
        const uint64_t cell = item_of(source, cells + offsetof(PyTupleObject, ob_item), i);
        if (cell != 0 && lc_word_at(source, cell + offsetof(PyCellObject, ob_ref)) == object) {
            return true;
        }
    }
    return false;
}

/* The loop has begun it: a task of the loop will set the Future. */
static bool is_chained_to(lc_cpython_source *source, uint64_t future, uint64_t loop)
{
    const uint64_t list = lc_attribute(source, future, "_done_callbacks");
    if (lc_type_at(source, list) != source->at.list_type) {
        return false;
    }
    const uint64_t count = lc_word_at(source, list + source->layout.var_size);
    const uint64_t items = lc_word_at(source, list + offsetof(PyListObject, ob_item));
    for (uint64_t i = 0; items != 0 && i < count && i < CALLBACKS_MAX; i++) {
        if (encloses(source, item_of(source, items, i), "_chain_future.<locals>._call_check_cancel", loop)) {
            return true;
        }
    }
    return false;
}

static bool is_deque(const lc_cpython_source *source, uint64_t object)
{
    const uint64_t type = lc_type_at(source, object);
    return type != 0 &&
           lc_c_string_is(source, lc_word_at(source, type + source->layout.type_name), "collections.deque");
}

/* From 3.14 on call_soon_threadsafe makes a _ThreadSafeHandle, whose base it is. */
static bool is_handle(const lc_cpython_source *source, uint64_t object)
{
    const uint64_t type = lc_type_at(source, object), handle = source->asyncio.handle_type;
    return type != 0 && (type == handle || lc_word_at(source, type + source->layout.type_base) == handle);
}

/* The loop has not yet come to it: among what is ready to run is the callback that will begin it. */
static bool is_ready_in(lc_cpython_source *source, uint64_t future, uint64_t loop)
{
    const uint64_t ready = lc_attribute(source, loop, "_ready");
    if (!source->asyncio.learned || !is_deque(source, ready)) {
        return false;
    }
    const uint64_t count = lc_word_at(source, ready + source->layout.var_size);
    uint64_t block = lc_word_at(source, ready + DEQUE_LEFT_BLOCK);
    uint64_t place = lc_word_at(source, ready + DEQUE_LEFT_INDEX);
    for (uint64_t i = 0; i < count && i < READY_MAX && block != 0 && place < BLOCK_ITEMS; i++) {
        const uint64_t handle = item_of(source, block + BLOCK_DATA, place);
        if (is_handle(source, handle) &&
            encloses(source, lc_word_at(source, handle + source->asyncio.handle_callback),
                     "run_coroutine_threadsafe.<locals>.callback", future)) {
            return true;
        }
        if (++place == BLOCK_ITEMS) {
            place = 0;
            block = item_of(source, block + BLOCK_DATA, BLOCK_ITEMS); /* the link to the right comes last */
        }
    }
    return false;
}

bool lc_future_comes_from(lc_cpython_source *source, uint64_t future, uint64_t thread_state)
{
    const uint64_t item = self_in(source, thread_state, "_WorkItem.run", "/concurrent/futures/thread.py");
    if (item != 0 && lc_attribute(source, item, "future") == future) {
        return true;
    }
    const uint64_t loop = self_in(source, thread_state, "BaseEventLoop._run_once", "/asyncio/base_events.py");
    return loop != 0 && (is_chained_to(source, future, loop) || is_ready_in(source, future, loop));
}
