/* The file of a start, as it lies beside the flight file: docs/internals/start-format.md.
 *
 * A page of header, then imports in the order of their begins; of a short record the page alone. Written
 * under the GIL, but for marks; read by anybody at any time, also after the process is dead.
 */
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

#define LC_START_MAGIC "LCSTART"
#define LC_START_VERSION 2u
#define LC_START_BYTE_ORDER 0x01020304u

enum {
    LC_START_HEADER_BYTES = 4096,
    LC_START_IMPORTS_MAX = 2048,
    LC_START_NAME_BYTES = 64,
    LC_START_MARK_ROOM = 16
};

/* Moments of a start: monotonic, in ns; 0: it has not come. */
typedef enum {
    LC_START_HOOK,      /* loopcanary's first line, in the middle of the site module */
    LC_START_WATCHED,   /* the engine runs */
    LC_START_SITE_OVER, /* the site module has looked for its last customization */
    LC_START_MAIN,      /* the main module's first import */
    LC_START_READY,     /* an application object was made */
    LC_START_LISTENING, /* a socket listens */
    LC_START_IDLE,      /* the main thread's loop waits, and has nothing to do */
    LC_START_ANSWERED,  /* the first request */
    LC_START_FRAME,     /* the first one is shown */
    LC_START_OVER,      /* the main module's end */
    LC_START_MARKS
} lc_start_mark;

_Static_assert((int)LC_START_MARKS <= (int)LC_START_MARK_ROOM, "marks fit");

typedef struct {
    char magic[8];
    uint32_t version;
    uint32_t byte_order;
    uint64_t file_bytes;
    uint64_t tid; /* of the main thread: its imports are noted */
    /* CLOCK_BOOTTIME less CLOCK_MONOTONIC: the kernel counts a process's start from the boot */
    uint64_t boot_offset_ns;
    uint64_t process_start; /* field 22 of /proc/PID/stat: clock ticks since boot */
    uint64_t tick_ns;       /* of such a tick */
    uint64_t run_ns;        /* when `loopcanary run` became this program, monotonic; 0: it did not */
    _Atomic uint64_t marks[LC_START_MARK_ROOM];
    _Atomic uint64_t imports;      /* that were begun; those beyond the room are counted only */
    _Atomic uint64_t major_faults; /* of the process, when something was noted last */
    _Atomic uint64_t collections;  /* of garbage, until the start was over */
    _Atomic uint64_t gc_ns;        /* that they took */
    uint64_t unfrozen; /* 1: Python reads modules of its own from files that it could have had frozen */
} lc_start_header;

typedef enum { LC_IMPORT_NO_CODE = 0, LC_IMPORT_CACHED = 1, LC_IMPORT_COMPILED = 2 } lc_import_how;

typedef struct {
    uint64_t begin_ns;
    _Atomic uint64_t end_ns;        /* 0: it goes on */
    uint64_t bytes;                 /* that its loader read */
    uint32_t depth;                 /* imports that it is inside of */
    uint16_t how;                   /* lc_import_how */
    uint16_t failed;                /* it raised */
    uint64_t major_faults;          /* of the thread meanwhile */
    char name[LC_START_NAME_BYTES]; /* UTF-8, cut; padded with zeros */
} lc_start_import;

static_assert(sizeof(lc_start_header) <= LC_START_HEADER_BYTES, "the header is a page");
static_assert(sizeof(lc_start_import) == 104, "documented");
