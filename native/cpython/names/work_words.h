/* Work words of a lane that are no object's address: an object's ends in three zero bits, and these bits say
 * what else the word is. */
#pragma once

#include "cpython/source/cpython_source.h"

#define LC_WORK_TAG_MASK UINT64_C(7)
#define LC_WORK_QT UINT64_C(1)     /* the receiver's address; in the upper 16 bits the event's type */
#define LC_WORK_NOTE UINT64_C(2)   /* the address of a note */
#define LC_WORK_CALLED UINT64_C(3) /* the loop's address; in the upper 16 bits a number of frames */
/* Addresses of programs have none of the upper 16 bits set (x86-64 with four levels of pages, aarch64 with 48
 * bits). */
#define LC_WORK_ADDRESS_MASK UINT64_C(0x0000FFFFFFFFFFF8)

/* ---- what the loop has called ------------------------------------------------------------------------
 * The loop does not name it. Its name is that of the task that the loop says it runs, or of the outermost
 * frame inside of those that were there when the loop began to run. */

/* `loop`: that asyncio says is running, 0 unknown; `frames_outside`: at most UINT16_MAX. Pure. */
static inline uint64_t lc_called_work(uint64_t loop, uint32_t frames_outside)
{
    return (uint64_t)frames_outside << 48 | (loop & LC_WORK_ADDRESS_MASK) | LC_WORK_CALLED;
}

static inline bool lc_is_called_work(uint64_t work) { return (work & LC_WORK_TAG_MASK) == LC_WORK_CALLED; }

/* The function that the loop called, in the thread's stack; empty: it called none of Python's. Pure. */
lc_text lc_called_function(uint64_t work, const lc_stack *stack);

/* Address of what asyncio says is the loop's current task; 0: none. Its type is not proven. Watchdog's
 * thread. */
uint64_t lc_called_task(const lc_cpython_source *source, uint64_t work, uint64_t thread_state);

/* ---- names of two parts -------------------------------------------------------------------------------
 * GLib's sources and handlers of signals: the note lies where the work is called. */

/* By what it came to run; each has its word in front of the name. */
typedef enum { LC_WAY_HANDLER, LC_WAY_TIMEOUT, LC_WAY_IDLE, LC_WAYS } lc_work_way;

/* 8-aligned; stays where it is until the work ends. */
typedef struct {
    uint64_t callable; /* the program's function */
    uint64_t signal;   /* str of the signal's name, 0: no handler */
    uint64_t way;      /* lc_work_way */
} lc_work_note;

static inline uint64_t lc_note_word(const lc_work_note *note)
{
    return (uint64_t)(uintptr_t)note | LC_WORK_NOTE;
}

static inline bool lc_is_noted_work(uint64_t work) { return (work & LC_WORK_TAG_MASK) == LC_WORK_NOTE; }

bool lc_note_read(const lc_cpython_source *source, uint64_t work, lc_work_note *out);

/* "timeout: App.poll", "clicked: App.on_click", into LC_STRING_MAX bytes, cut at the end. Empty without a
 * name. Pure. `into` may not hold the texts. */
lc_text lc_note_text(const lc_work_note *note, lc_text name, lc_text signal, char *into);

/* ---- events that Qt delivers ----------------------------------------------------------------------- */

/* Of lc_work_kind.key: the address of a C++ type's name; the owner is then the event's type. */
#define LC_KIND_QT (UINT64_C(1) << 62)

#define LC_QT_TYPE_UNKNOWN 0u
#define LC_QT_TYPE_DEFERRED_DELETE 52u

/* The word of an event that is over: one that deletes its receiver leaves none to be named. Pure. */
static inline uint64_t lc_qt_work_ended(uint64_t work)
{
    return work >> 48 == LC_QT_TYPE_DEFERRED_DELETE ? work & ~LC_WORK_ADDRESS_MASK : work;
}

static inline uint64_t lc_qt_work(uint64_t receiver, uint16_t type)
{
    return (uint64_t)type << 48 | (receiver & LC_WORK_ADDRESS_MASK) | LC_WORK_QT;
}

static inline bool lc_is_qt_work(uint64_t work) { return (work & LC_WORK_TAG_MASK) == LC_WORK_QT; }

/* "QPushButton: MouseButtonRelease", into LC_STRING_MAX bytes. What cannot be read is left out. */
lc_text lc_qt_work_name(const lc_cpython_source *source, uint64_t work, char *into);
lc_text lc_qt_kind_name(const lc_cpython_source *source, lc_work_kind kind, char *into);

/* The name of an event's type, NULL where it has none. Pure. */
const char *lc_qt_event_name(uint32_t type);

/* The class that a C++ type's name (Itanium's mangling) tells, without what bindings put around it: where
 * it begins in `name`, and its length; 0: none. Pure. */
uint32_t lc_qt_class_name(const char *name, uint32_t bytes, const char **begin);
