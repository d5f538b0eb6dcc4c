/* Where a thread was when it acquired one lock while it held another one: its name, what the locks are called there, and its
 * stack. Kept in C: no object of Python's is made while the program holds its locks, since that may begin a collection, which
 * runs the program's finalizers. */
#include "probes/orders/held.h"

#include <stdlib.h>

#include "probes/orders/own_frames.h"

enum { FRAMES_MAX = 16 };

/* Strings only: to let go of them runs nothing of the program's. */
typedef struct {
    PyObject *file, *qualname, *name; /* references; NULL: not known */
    int line;
} order_frame;

struct lc_order_stack {
    uint32_t owners;
    char thread[LC_ORDER_NAME_BYTES];
    uint32_t count;
    order_frame frames[]; /* innermost first */
};

struct lc_order_place {
    uint32_t owners;
    lc_order_text *holds, *takes;
    order_frame held;
    lc_order_stack *stack;
};

/* ---- frames ------------------------------------------------------------------------------- */

bool lc_is_plumbing(const PyCodeObject *code)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(lc_orders_now.files); i++) {
        if (PyTuple_GET_ITEM(lc_orders_now.files, i) == code->co_filename) { /* one string for all code of a file */
            return true;
        }
    }
    return false;
}

PyCodeObject *lc_acquiring_code(const PyCodeObject **innermost, int *at)
{
    lc_own_frame frame;
    *innermost = NULL;
    if (!lc_own_frames_known() || !lc_own_frame_from(lc_own_frames(), &frame)) {
        return NULL;
    }
    *innermost = frame.code;
    for (lc_own_frame outer = frame; lc_is_plumbing(outer.code) && lc_own_frame_next(&outer);) {
        frame = outer;
    }
    *at = frame.at;
    return frame.code;
}

static order_frame kept(const PyCodeObject *code, int at)
{
    return (order_frame){Py_NewRef(code->co_filename), Py_NewRef(code->co_qualname), Py_NewRef(code->co_name),
                         PyCode_Addr2Line((PyCodeObject *)code, at)};
}

static void let_go_of(order_frame *frame)
{
    Py_CLEAR(frame->file);
    Py_CLEAR(frame->qualname);
    Py_CLEAR(frame->name);
}

static uint32_t count_frames(lc_own_frame frame)
{
    uint32_t count = 1;
    while (count < FRAMES_MAX && lc_own_frame_next(&frame)) {
        count++;
    }
    return count;
}

lc_order_stack *lc_order_stack_new(void)
{
    lc_own_frame frame;
    if (!lc_own_frames_known() || !lc_own_frame_from(lc_own_frames(), &frame)) {
        return NULL;
    }
    const uint32_t count = count_frames(frame);
    lc_order_stack *stack = malloc(sizeof *stack + count * sizeof stack->frames[0]);
    if (stack == NULL) {
        return NULL;
    }
    stack->owners = 1;
    stack->count = count;
    for (uint32_t i = 0; i < count; i++, (void)lc_own_frame_next(&frame)) {
        stack->frames[i] = kept(frame.code, frame.at);
    }
    lc_name_thread(stack->thread);
    return stack;
}

void lc_order_stack_drop(lc_order_stack *stack)
{
    if (stack == NULL || --stack->owners > 0) {
        return;
    }
    for (uint32_t i = 0; i < stack->count; i++) {
        let_go_of(&stack->frames[i]);
    }
    free(stack);
}

/* ---- places ------------------------------------------------------------------------------- */

/* What the lock is called, found when it is first needed while it is held. */
static lc_order_text *name_of(lc_held_lock *held)
{
    if (held->name == NULL && (held->name = malloc(sizeof *held->name)) != NULL) {
        held->name->owners = 1;
        lc_name_lock(held, held->name->text);
    }
    if (held->name != NULL) {
        held->name->owners++;
    }
    return held->name;
}

static void drop_text(lc_order_text *text)
{
    if (text != NULL && --text->owners == 0) {
        free(text);
    }
}

lc_order_place *lc_order_place_new(lc_held_lock *held, lc_held_lock *taken, lc_order_stack *stack)
{
    lc_order_place *place = malloc(sizeof *place);
    if (place == NULL) {
        return NULL;
    }
    stack->owners++;
    *place = (lc_order_place){1, name_of(held), name_of(taken), kept(held->code, held->at), stack};
    if (place->holds == NULL || place->takes == NULL) {
        lc_order_place_drop(place);
        return NULL;
    }
    return place;
}

lc_order_place *lc_order_place_share(lc_order_place *place)
{
    place->owners++;
    return place;
}

void lc_order_place_drop(void *dropped)
{
    lc_order_place *place = dropped;
    if (--place->owners == 0) {
        drop_text(place->holds);
        drop_text(place->takes);
        let_go_of(&place->held);
        lc_order_stack_drop(place->stack);
        free(place);
    }
}

/* ---- as Python takes them ----------------------------------------------------------------- */

static PyObject *frame_told(const order_frame *frame)
{
    return Py_BuildValue("(OOOi)", frame->file, frame->qualname, frame->name, frame->line);
}

/* It may have been cut in a character. */
static PyObject *text_told(const char *text) { return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "ignore"); }

PyObject *lc_order_place_told(const lc_order_place *place)
{
    const lc_order_stack *stack = place->stack;
    PyObject *frames = PyTuple_New(stack->count);
    for (uint32_t i = 0; frames != NULL && i < stack->count; i++) {
        PyObject *frame = frame_told(&stack->frames[i]);
        if (frame == NULL) {
            Py_CLEAR(frames);
        } else {
            PyTuple_SET_ITEM(frames, i, frame);
        }
    }
    return Py_BuildValue("(NNNNN)", text_told(stack->thread), text_told(place->holds->text),
                         text_told(place->takes->text), frame_told(&place->held), frames);
}
