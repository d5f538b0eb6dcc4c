/* Work whose name has more parts than its function's: a lane's work word is then the address of a note, which lies where the
 * work is called. Tk's commands, GLib's sources. */
#ifndef LOOPCANARY_WORK_NOTE_H
#define LOOPCANARY_WORK_NOTE_H

#include "cpython/source/cpython_source.h"

/* No object's address ends in this. */
#define LC_WORK_NOTE UINT64_C(2)
#define LC_WORK_NOTE_TAG_MASK UINT64_C(7)

/* By what it came to run; each has its word in front of the name. */
typedef enum { LC_WAY_COMMAND, LC_WAY_AFTER, LC_WAY_AFTER_IDLE, LC_WAY_TIMEOUT, LC_WAY_IDLE, LC_WAYS } lc_work_way;

/* 8-aligned; stays where it is until the work ends. */
typedef struct {
    uint64_t callable; /* the program's function */
    uint64_t widget;   /* str of the widget's path, 0 where no widget has a part in it */
    uint32_t way;      /* lc_work_way */
    uint16_t event;    /* X event type (X11/X.h; 35: virtual), 0: none */
    uint16_t button;   /* of a button's event, 0: not known */
} lc_work_note;

static inline uint64_t lc_note_word(const lc_work_note *note) { return (uint64_t)(uintptr_t)note | LC_WORK_NOTE; }

static inline bool lc_is_noted_work(uint64_t work) { return (work & LC_WORK_NOTE_TAG_MASK) == LC_WORK_NOTE; }

/* False: it cannot be read. */
bool lc_note_read(const lc_cpython_source *source, uint64_t work, lc_work_note *out);

/* "after: App.poll", ".!button: App.on_click (<Button-1>)", into LC_STRING_MAX bytes, cut at the end. Empty without a
 * name. Pure. `into` may not hold the texts. */
lc_text lc_note_text(const lc_work_note *note, lc_text name, lc_text widget, char *into);

#endif
