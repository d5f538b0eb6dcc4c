/* What Tk runs, as a lane's work word tells it: the address of a note that lies where the work is called. */
#ifndef LOOPCANARY_WORK_TK_H
#define LOOPCANARY_WORK_TK_H

#include "cpython_source.h"

/* No object's address ends in this. */
#define LC_WORK_TK UINT64_C(2)
#define LC_WORK_TK_TAG_MASK UINT64_C(7)

typedef enum { LC_TK_COMMAND, LC_TK_AFTER, LC_TK_AFTER_IDLE } lc_tk_way;

/* 8-aligned; stays where it is until the work ends. */
typedef struct {
    uint64_t callable; /* the program's function */
    uint64_t widget;   /* str of the widget's path, 0 where the widget has no part in it */
    uint32_t way;      /* lc_tk_way */
    uint16_t event;    /* X event type (X11/X.h; 35: virtual), 0: none */
    uint16_t button;   /* of a button's event, 0: not known */
} lc_tk_work;

static inline uint64_t lc_tk_work_word(const lc_tk_work *note) { return (uint64_t)(uintptr_t)note | LC_WORK_TK; }

static inline bool lc_is_tk_work(uint64_t work) { return (work & LC_WORK_TK_TAG_MASK) == LC_WORK_TK; }

/* False: it cannot be read. */
bool lc_tk_work_read(const lc_cpython_source *source, uint64_t work, lc_tk_work *out);

/* "after: App.poll", ".!button: App.on_click (<Button-1>)", into LC_STRING_MAX bytes, cut at the end. Empty without a
 * name. Pure. `into` may not hold the texts. */
lc_text lc_tk_work_text(const lc_tk_work *note, lc_text name, lc_text widget, char *into);

#endif
