/* Frames of the calling thread, read where the engine has learnt that they are (cpython/layouts/layout.h). GIL held. */
#ifndef LOOPCANARY_OWN_FRAMES_H
#define LOOPCANARY_OWN_FRAMES_H

#include <Python.h>
#include <stdbool.h>
#include <string.h>

#include "module/agent.h"

typedef struct {
    const char *frame; /* _PyInterpreterFrame */
    PyCodeObject *code;
    int at;
} lc_own_frame;

static inline const lc_layout *lc_own_layout(void) { return &lc_the_agent.source.layout; }

static inline const char *lc_pointer_at(const char *address)
{
    const char *pointer;
    memcpy(&pointer, address, sizeof pointer);
    return pointer;
}

/* The innermost frame, of any kind. */
static inline const char *lc_own_frames(void)
{
    const lc_layout *l = lc_own_layout();
    const char *frame = lc_pointer_at((const char *)PyThreadState_Get() + l->thread_frame);
    return l->cframe_frame != LC_ABSENT && frame != NULL ? lc_pointer_at(frame + l->cframe_frame) : frame;
}

/* The next one outwards that executes code of Python's, from this one on. */
static inline bool lc_own_frame_from(const char *frame, lc_own_frame *found)
{
    const lc_layout *l = lc_own_layout();
    while (frame != NULL && (uint8_t)frame[l->frame_owner] >= l->owner_shim) {
        frame = lc_pointer_at(frame + l->frame_previous);
    }
    if (frame == NULL) {
        return false;
    }
    PyObject *code = (PyObject *)((uintptr_t)lc_pointer_at(frame + l->frame_code) & ~(uintptr_t)l->frame_tags);
    if (code == NULL || !PyCode_Check(code)) {
        return false;
    }
    const char *instruction = lc_pointer_at(frame + l->frame_instr);
    *found = (lc_own_frame){frame, (PyCodeObject *)code, (int)(instruction - (const char *)code - l->code_bytes)};
    return true;
}

static inline bool lc_own_frame_next(lc_own_frame *frame)
{
    return lc_own_frame_from(lc_pointer_at(frame->frame + lc_own_layout()->frame_previous), frame);
}

/* False before the engine has learnt where frames are. */
static inline bool lc_own_frames_known(void) { return lc_the_agent.running && lc_the_agent.source.layout.version != 0; }

#endif
