/* What Tk shows. It draws when Tcl is idle, without a sign: the calls by which libtk puts something on the screen are
 * hooked in its table of imported functions (got.h), and those that go to a window are a drawing.
 *
 * A frame is all that is drawn between two waits of Tcl's, or by one update_idletasks(); of all windows of the thread
 * together. Frames, and that the focus or a title has changed, are kept until a place where Python may be called: the
 * begin of a command, the end of update(). Nothing of tkinter's may be called from Tcl's event sources.
 */
#ifndef LOOPCANARY_TK_FRAMES_H
#define LOOPCANARY_TK_FRAMES_H

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t waited_ns; /* the loop's waits since the frame before, together */
    uint64_t asked_ns;  /* the last moment at which nothing was to be drawn: the end of a wait, or of an update() */
    uint64_t drawn_ns;
} lc_tk_frame;

#define LC_TK_FRAMES_MAX 512u

/* Of one thread; never freed while it runs. */
typedef struct {
    uint64_t waited_ns; /* since the last frame, but for the last wait */
    uint64_t asked_ns;
    uint64_t wait_begin_ns; /* the last wait */
    uint64_t wait_end_ns;
    bool served;       /* since then: an event, a command */
    uint64_t drawn_ns; /* 0: nothing since the last frame */
    uint32_t count;    /* frames that are kept */
    bool look;         /* focus or a title has changed */
    bool telling;
    lc_tk_frame frames[LC_TK_FRAMES_MAX];
} lc_tk_drawing;

extern _Thread_local lc_tk_drawing *lc_own_tk_drawing __attribute__((tls_model("initial-exec")));

/* The calling thread's, made at the first call; NULL: no memory, or no listener. GIL held. */
lc_tk_drawing *lc_tk_drawing_open(void);

/* What there is to draw is drawn. Without the GIL, as all of these. */
void lc_tk_drawing_ended(lc_tk_drawing *drawing);
/* The program has had everything drawn: update(), update_idletasks(). */
void lc_tk_drawing_updated(lc_tk_drawing *drawing);
/* Tcl is about to wait, and has waited. `polls`: it asked not to block. */
void lc_tk_drawing_waits(lc_tk_drawing *drawing);
void lc_tk_drawing_waited(lc_tk_drawing *drawing, bool polls);

/* Hands over what is kept. `widget`: any of the thread's, or NULL. GIL held, where tkinter may be called. False, with an
 * exception set: something that is not ours to stop. Keeps an exception that is set. */
bool lc_tk_tell_kept(lc_tk_drawing *drawing, PyObject *widget);

static inline bool lc_tk_tell(PyObject *widget)
{
    lc_tk_drawing *drawing = lc_own_tk_drawing;
    return __builtin_expect(drawing == NULL || (drawing->count == 0 && !drawing->look), 1) ||
           lc_tk_tell_kept(drawing, widget);
}

/* tk_listen(path of _tkinter | None, function | None) -> bool: function(widget, look, frames) hears of frames, as tuples (waited_ns,
 * asked_ns, drawn_ns), and, `look`, that focus or a title may be another. False: drawing cannot be seen. With no function
 * the hooks are taken back. */
PyObject *lc_tk_listen(PyObject *module, PyObject *args);
/* tk_titled(original) -> PatchedFunction that calls it, and asks for a look. */
PyObject *lc_tk_titled(PyObject *module, PyObject *original);

#endif
