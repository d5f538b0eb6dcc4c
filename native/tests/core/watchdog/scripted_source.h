/* A frame source whose stacks the test writes. */
#pragma once

#include <string.h>

#include "core/watchdog/frame_source.h"

typedef struct {
    lc_frame_source source; /* first */
    uint64_t serial;        /* of the one frame's code; change it for another stack */
    uint32_t depth;
    lc_gil_state gil;
    void (*during_walk)(void); /* what the program does while it is read */
    unsigned walks;
    lc_lock_view lock;         /* what is answered of locks */
    lc_lock_question question; /* the last one */
    unsigned questions;
    uint64_t other_tid; /* of the second thread that is answered; 0: 2 */
    lc_code_facts code;
} scripted_source;

static lc_walk_result scripted_walk(lc_frame_source *self, uint64_t thread_state, lc_stack *out)
{
    scripted_source *s = (scripted_source *)self;
    (void)thread_state;
    s->walks++;
    if (s->during_walk) {
        s->during_walk();
    }
    s->code = (lc_code_facts){s->serial, {"app.py", 6}, {"handler", 7}, 10, 0};
    out->count = s->depth;
    out->truncated = false;
    out->inner_cut = false;
    out->hash = s->serial * 1000u + s->depth;
    for (uint32_t i = 0; i < s->depth; i++) {
        out->frames[i] = (lc_frame){&s->code, 10 + i, 10 + i, 1, 5};
    }
    return s->depth ? LC_WALK_OK : LC_WALK_EMPTY;
}

static void scripted_gil(lc_frame_source *self, uint64_t thread_state, lc_gil_view *out)
{
    (void)thread_state;
    memset(out, 0, sizeof *out);
    out->state = ((scripted_source *)self)->gil;
}

static uint64_t scripted_thread_state(lc_frame_source *self, uint64_t tid)
{
    (void)self;
    return 16u * tid;
}

static uint32_t scripted_threads(lc_frame_source *self, uint64_t thread_state, lc_thread_ref *out,
                                 uint32_t room)
{
    const uint64_t other = ((scripted_source *)self)->other_tid;
    if (room < 2) {
        return 0;
    }
    out[0] = (lc_thread_ref){thread_state, 1};
    out[1] = (lc_thread_ref){thread_state + 8, other ? other : 2};
    return 2;
}

static lc_text scripted_thread_name(lc_frame_source *self, uint64_t thread_state, uint64_t tid)
{
    (void)self;
    (void)thread_state;
    return tid == 2 ? (lc_text){"worker", 6} : (lc_text){NULL, 0};
}

static void scripted_work(lc_frame_source *self, uint64_t work, uint64_t thread_state, const lc_stack *stack,
                          lc_work_names *out)
{
    (void)self;
    (void)thread_state;
    (void)stack;
    out->callback = work == 7 ? (lc_text){"handler", 7} : (lc_text){"other", 5};
    out->task = (lc_text){"Task-1", 6};
}

static void scripted_lock(lc_frame_source *self, const lc_lock_question *question, lc_lock_view *out)
{
    scripted_source *s = (scripted_source *)self;
    s->question = *question;
    s->questions++;
    *out = s->lock;
}

static bool scripted_waits_for(lc_frame_source *self, uint64_t thread_state, uint64_t futex, uint64_t object)
{
    (void)thread_state;
    return futex != 0 && object == ((scripted_source *)self)->lock.object;
}

static lc_text scripted_text(lc_frame_source *self, uint64_t str_object)
{
    (void)self;
    return str_object == 8 ? (lc_text){"mount", 5}
           : str_object    ? (lc_text){"checkout", 8}
                           : (lc_text){NULL, 0};
}

static lc_text scripted_kind_name(lc_frame_source *self, lc_work_kind kind)
{
    static const char *const names[] = {"", "parse", "render", "store"};
    (void)self;
    const char *name = kind.key < 4 ? names[kind.key] : kind.key == UINT64_MAX ? "" : "other";
    return (lc_text){name, (uint32_t)strlen(name)};
}

static inline scripted_source scripted(void)
{
    return (scripted_source){
        .source = {.walk = scripted_walk,
                   .gil = scripted_gil,
                   .thread_state = scripted_thread_state,
                   .threads = scripted_threads,
                   .thread_name = scripted_thread_name,
                   .work = scripted_work,
                   .text = scripted_text,
                   .kind_name = scripted_kind_name,
                   .lock = scripted_lock,
                   .waits_for = scripted_waits_for},
        .serial = 1,
        .depth = 3,
    };
}
