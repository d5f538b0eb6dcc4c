/* The flight file: the one thing that the native side writes and that Python reads.
 *
 * Everything here is the file's format, version LC_FLIGHT_VERSION: fixed-width little-endian
 * fields, no pointers, no padding left to the compiler. docs/internals/flight-format.md describes it field
 * by field; src/loopcanary/flight/format.py states it again for the readers, and
 * tests/flight/test_format_agreement.py holds the two together. A change here is a new version.
 *
 * Who writes what:
 *   header    the engine at creation; the watchdog afterwards (rate, heartbeat)
 *   facts     the engine, under the GIL, while no reader can see a half-written text (length last)
 *   lane      its program thread (the "hot" and "ended" parts), the engine (the "name" part), the watchdog
 *             (the words that say so)
 *   gc ring   the thread that collects, under the GIL
 *   slots     the watchdog; the process's own drain only moves ENDED to FREE
 *   counters  anyone, relaxed
 *   keeper    the keeper, another process; of all parts only this one. `bell` is rung by both sides
 *
 * The file lives in memory (tmpfs) wherever it can: a store to a page of a disk file can block in
 * the kernel for as long as the disk does (the JVM's hsperfdata pauses), and lanes are stored to
 * from the thread that must not block.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define LC_FLIGHT_MAGIC "LCFLIGHT"
#define LC_FLIGHT_VERSION 2u
#define LC_BYTE_ORDER_MARK 0x01020304u

typedef _Atomic uint64_t lc_word;

/* ---- sections --------------------------------------------------------------------------- */

typedef struct {
    uint64_t offset; /* from the start of the file */
    uint64_t stride; /* bytes of one element */
    uint64_t count;  /* elements there is room for */
    lc_word used;    /* elements in use from the start (facts: bytes in use; gc: ever written) */
} lc_section;

enum {
    LC_SECTION_FACTS,
    LC_SECTION_COUNTERS,
    LC_SECTION_GC,
    LC_SECTION_LANES,
    LC_SECTION_SLOTS,
    LC_SECTION_KEEPER,
    LC_SECTION_COUNT
};

/* ---- header ----------------------------------------------------------------------------- */

typedef enum { LC_PROCESS_RUNNING = 1, LC_PROCESS_ENDED = 2, LC_PROCESS_EXITED = 3 } lc_process_state;

typedef enum { LC_CLOCK_MONOTONIC = 0, LC_CLOCK_TSC = 1, LC_CLOCK_CNTVCT = 2 } lc_clock_kind;

/* TakenBy of flight/format.py */
typedef enum { LC_TAKES_DRAIN = 0, LC_TAKES_KEEPER = 1 } lc_taker;

#define LC_HEADER_BYTES 4096u

typedef struct {
    char magic[8];
    uint32_t version;
    uint32_t byte_order;
    uint64_t file_bytes;
    uint64_t pid;
    uint64_t parent_pid;
    uint64_t process_start; /* field 22 of /proc/PID/stat, clock ticks since boot: pids are reused */
    uint64_t pid_namespace; /* inode of /proc/self/ns/pid, 0 unknown */
    uint8_t boot_id[16];    /* /proc/sys/kernel/random/boot_id, zeros unknown */
    lc_word state;          /* lc_process_state */
    lc_word ended_ns;       /* monotonic, 0 while running */
    uint64_t started_ns;    /* monotonic */
    /* One pairing of the clocks; wall times are for people only. */
    uint64_t anchor_monotonic_ns;
    int64_t anchor_wall_ns; /* since 1970 */
    uint64_t anchor_ticks;
    /* ns = anchor_monotonic_ns + (ticks - anchor_ticks) * tick_ns_q32 / 2^32; the watchdog refines the
     * rate. */
    lc_word tick_ns_q32;
    uint64_t clock_kind;  /* lc_clock_kind */
    lc_word heartbeat_ns; /* when the watchdog last looked; it does not look while parked */
    lc_word parked;       /* 1 while the watchdog sleeps without a deadline: all lanes are idle */
    /* Garbage collection now: odd while one runs. */
    lc_word gc_epoch;
    lc_word gc_begin; /* ticks */
    lc_word gc_tid;   /* native thread id of the collecting thread */
    lc_word gc_generation;
    lc_word gc_total_ns;
    lc_section sections[LC_SECTION_COUNT];
    /* Version 1 ended with its five sections; what follows them was 0. */
    lc_word takes;        /* lc_taker: who takes stalls out of the slots */
    lc_word text_written; /* number of the keeper's last text that was written to stderr, or given up */
    lc_section looks;     /* at tasks; zeros in older files */
} lc_header;

_Static_assert(sizeof(lc_header) <= LC_HEADER_BYTES, "the header has one page");

/* ---- facts: one UTF-8 JSON object about the session ---------------------------------------- */

#define LC_FACTS_BYTES 16384u

/* ---- counters: what the native side did, and what it dropped, by reason ---------------------- */

/* clang-format off */
#define LC_COUNTER_LIST(X)      \
    X(watchdog_wakeups)         \
    X(watchdog_late)            \
    X(watchdog_cpu_ns)          \
    X(samples_taken)            \
    X(samples_dropped_moved)    \
    X(samples_dropped_unreadable) \
    X(samples_dropped_full)     \
    X(frames_truncated)         \
    X(sample_ns_total)          \
    X(sample_ns_max)            \
    X(stalls_recorded)          \
    X(stalls_unsampled)         \
    X(stalls_dropped_no_slot)   \
    X(stalls_dropped_ring_full) \
    X(stalls_suppressed_debugger) \
    X(stalls_suppressed_expected) \
    X(lanes_refused)            \
    X(gc_collections)           \
    X(checkpoints_written) X(checkpoints_failed) \
    X(suspends) X(clock_steps)  \
    X(calls_refused) X(calls_no_descriptor) \
    X(stalls_suppressed_storm)  \
    X(keepers_started) X(keepers_refused) \
    X(texts_written) X(texts_dropped)
/* clang-format on */

typedef enum {
#define LC_COUNTER_ENUM(name) LC_COUNTER_##name,
    LC_COUNTER_LIST(LC_COUNTER_ENUM)
#undef LC_COUNTER_ENUM
        LC_COUNTER_COUNT
} lc_counter;

#define LC_COUNTER_ROOM 64u /* words in the section; the list may grow up to it within a version */
_Static_assert(LC_COUNTER_COUNT <= LC_COUNTER_ROOM, "counters fit their section");

/* ---- garbage collections, the last LC_GC_COUNT of them, as a ring --------------------------- */

#define LC_GC_COUNT 64u

typedef struct {
    lc_word sequence; /* 1-based, written last; entry i holds sequences i+1, i+1+count, ... */
    uint64_t begin_ns;
    uint64_t end_ns;
    uint64_t tid;
    uint64_t generation;
    uint64_t collected;
    uint64_t uncollectable;
    uint64_t reserved;
} lc_gc_entry;

_Static_assert(sizeof(lc_gc_entry) == 64, "one cache line");

/* ---- lanes ------------------------------------------------------------------------------- */

#define LC_LANE_COUNT 256u
#define LC_LANE_BYTES 24576u
#define LC_ENDED_COUNT 16u
#define LC_NAME_BYTES 64u
#define LC_HISTOGRAM_SUB_BITS 4u  /* 16 buckets an octave: at most 6.25 % wide */
#define LC_HISTOGRAM_MIN_BITS 10u /* first octave starts at 1.024 us; all below is bucket 0 */
#define LC_HISTOGRAM_OCTAVES 30u  /* last octave ends at 2^40 ns = 18 min; all above is the last bucket */
#define LC_HISTOGRAM_BUCKETS (1u + (LC_HISTOGRAM_OCTAVES << LC_HISTOGRAM_SUB_BITS))

static inline uint32_t lc_histogram_bucket(uint64_t ns)
{
    if (ns < (UINT64_C(1) << LC_HISTOGRAM_MIN_BITS)) {
        return 0;
    }
    const uint32_t octave = 63u - (uint32_t)__builtin_clzll(ns) - LC_HISTOGRAM_MIN_BITS;
    if (octave >= LC_HISTOGRAM_OCTAVES) {
        return LC_HISTOGRAM_BUCKETS - 1u;
    }
    const uint32_t sub = (uint32_t)(ns >> (octave + LC_HISTOGRAM_MIN_BITS - LC_HISTOGRAM_SUB_BITS)) &
                         ((1u << LC_HISTOGRAM_SUB_BITS) - 1u);
    return 1u + (octave << LC_HISTOGRAM_SUB_BITS) + sub;
}

typedef enum {
    LC_ENDED_CALLBACK = 1,
    LC_ENDED_TURN = 2,
    /* A slot's, of no lane: a thread in no turn that caused a fault; the main one, where the program does
     * not start, or does not end. */
    LC_ENDED_FAULT = 3,
    LC_ENDED_BOOT = 4,
    LC_ENDED_EXIT = 5
} lc_ended_kind;

/* One stall as its own thread saw it end: exact, and there even if the watchdog never ran. */
typedef struct {
    lc_word sequence; /* 1-based, written last */
    lc_word kind;     /* lc_ended_kind */
    lc_word epoch;    /* of the callback; for a turn, of its longest callback (0 none) */
    lc_word turn_epoch;
    lc_word begin;               /* ticks */
    lc_word end;                 /* ticks */
    lc_word turn_begin;          /* or the end of a callback of the turn that was judged alone before */
    lc_word turn_callbacks;      /* callbacks since then */
    lc_word turn_callback_ticks; /* their sum */
    lc_word longest_ticks;       /* the longest of them */
    lc_word cpu_ns;              /* CPU time of the thread at the end (CLOCK_THREAD_CPUTIME_ID), 0 unknown */
    lc_word queue_ticks; /* how late the callback began: after its due time, or after its turn began */
    lc_word reserved[4];
} lc_ended;

_Static_assert(sizeof(lc_ended) == 128, "two cache lines");

/* Callbacks of one kind within a turn, that were scheduled at one place. `key` and `owner` are addresses
 * in the process, which name the kind to lc_frame_source.kind_name; they mean nothing outside of it. */
#define LC_TALLY_COUNT 32u

typedef struct {
    lc_word key;   /* 0: free; stored last */
    lc_word owner; /* 0 none */
    lc_word site;  /* where they were scheduled, as lc_site_of; 0 not known */
    lc_word count;
    lc_word ticks;
    lc_word longest; /* ticks */
} lc_tally_entry;

_Static_assert(sizeof(lc_tally_entry) == 48, "six words");

/* A callback or turn that was long, though perhaps no stall, as its own thread saw it end; in a ring
 * behind the lane, from LC_LONG_WORK_OFFSET on. The sums say what the lane had done before it began, so
 * that what lies between two entries need not be recorded: it is their difference. */
#define LC_LONG_WORK_COUNT 64u
#define LC_LONG_WORK_OFFSET 8192u /* from the lane's start */
#define LC_LONG_NAME_BYTES 120u
#define LC_LONG_TASK_BYTES 48u

typedef struct {
    lc_word sequence;  /* 1-based, written last; entry i holds sequences i+1, i+1+count, ... */
    lc_word kind;      /* lc_ended_kind */
    lc_word epoch;     /* of the callback; of a turn its turn_epoch */
    lc_word begin;     /* ticks */
    lc_word end;       /* ticks */
    lc_word callbacks; /* of a turn: how many, and the longest; of a callback: 1, and itself */
    lc_word longest_ticks;
    lc_word turns_before;
    lc_word busy_ticks_before;
    lc_word callbacks_before;
    lc_word limit;                 /* ticks; what was longer was recorded */
    char name[LC_LONG_NAME_BYTES]; /* of a callback, as a slot's; NUL-padded UTF-8, cut at the end */
    char task[LC_LONG_TASK_BYTES];
} lc_long_work;

_Static_assert(sizeof(lc_long_work) == 256, "four cache lines");

typedef enum {
    LC_LANE_FREE = 0,
    LC_LANE_ACTIVE = 1, /* a thread owns it */
    LC_LANE_CLOSED = 2  /* its thread or loop is gone; figures stay until the lane is needed */
} lc_lane_state;

typedef struct {
    /* Hot: stored by the program thread only; one cache line. An odd epoch: a callback runs;
     * an odd turn_epoch: the loop is in a turn, that is, between two waits. */
    _Alignas(64) lc_word epoch;
    lc_word begin;      /* ticks; of the running callback */
    lc_word work;       /* address of the running handle or event, 0 none; see lc_frame_source */
    lc_word turn_epoch; /* odd inside a turn */
    lc_word turn_begin; /* ticks */
    lc_word turn_callbacks;
    lc_word turn_callback_ticks;
    lc_word turn_longest; /* ticks */

    /* Warm: stored by the program thread, rarely or once a turn. */
    lc_word turn_longest_epoch;
    lc_word turn_rest; /* ticks; end of the turn's last callback that was judged alone, 0 none. The words of
                        * the turn's callbacks are of those since then */
    lc_word scene;     /* address of the scene's name (a str kept alive by the engine), 0 none */
    lc_word allowance; /* ticks that `expect` grants... */
    lc_word allowance_epoch;      /* ...to the callback of this epoch */
    lc_word queue_ticks;          /* how late the running callback began */
    lc_word turn_callback_ticks2; /* sum of the squares of the turn's callbacks, ticks^2 */
    lc_word tally; /* the watchdog's wish: turn_epoch of the turn whose callbacks shall be tallied */

    /* Totals: stored by the program thread once a turn. */
    lc_word turns;
    lc_word callbacks;
    lc_word busy_ticks;    /* sum of turn durations */
    lc_word busy_ns2_high; /* sum of squared turn durations, ns^2, 128 bits */
    lc_word busy_ns2_low;
    lc_word longest_turn; /* ticks */
    lc_word queue_ticks_total;
    lc_word queue_ticks_max;
    lc_word callback_ticks;       /* sum of callbacks */
    lc_word callback_ticks2_high; /* sum of their squares, ticks^2, 128 bits */
    lc_word callback_ticks2_low;
    lc_word slices_congested; /* see lc_congested_slices */
    lc_word stalls;           /* stalls that this owner of the lane has recorded in `ended` */
    lc_word stalled_ticks;    /* their sum */
    lc_word gc_ns;            /* in collections on this thread */
    lc_word long_count;       /* entries ever written to the ring of long work by this owner of the lane */

    /* Cold: stored by the engine when the lane is given out. */
    lc_word state;        /* lc_lane_state */
    lc_word tid;          /* native thread id */
    lc_word thread_state; /* address of the PyThreadState */
    lc_word opened_ns;
    lc_word closed_ns;
    lc_word threshold;                 /* ticks; a callback or turn longer than this is a stall */
    lc_word sample_delay;              /* ticks; first sample after this */
    lc_word generation;                /* how often the lane was given out */
    char loop_kind[LC_NAME_BYTES / 2]; /* "asyncio", "uvloop", "thread", ...; NUL-padded UTF-8 */
    char thread_name[LC_NAME_BYTES];   /* NUL-padded UTF-8 */
    lc_word ended_seen;                /* records of `ended` that the watchdog has dealt with */
    lc_word ended_count;               /* stalls ever written to `ended` */
    lc_word abandoned;                 /* epoch of a callback whose end was told on another thread, 0 none */
    /* Of the thread since its start (schedstat): when the lane was opened, and last; 0 unknown. The last
     * ones are stored by the watchdog, and by the thread itself when it closes the lane. */
    lc_word on_cpu_begin_ns;
    lc_word run_queue_begin_ns;
    lc_word on_cpu_ns;
    lc_word run_queue_ns;
    /* Long work; stored by the program thread, the first also by the watchdog. */
    lc_word long_limit; /* ticks; what takes longer is recorded; never above the threshold */
    lc_word long_limit_least;
    lc_word long_round;      /* ticks; begin of the ring's present round */
    lc_word long_turn;       /* turn_epoch that the next word is of */
    lc_word long_turn_ticks; /* sum of the callbacks of that turn that were recorded */

    lc_ended ended[LC_ENDED_COUNT]; /* ring; consumed by the watchdog */
    lc_word turn_histogram[LC_HISTOGRAM_BUCKETS];

    /* The tally: callbacks of one turn by what they are. Stored by the program thread, while `tally` asks
     * for it. */
    lc_word tally_turn;    /* turn_epoch of the turn it is of; 0 while it is emptied */
    lc_word tally_from;    /* ticks; begin of the first callback that it counts */
    lc_word tally_dropped; /* callbacks for which there was no entry */
    lc_tally_entry tally_entries[LC_TALLY_COUNT];
} lc_lane;

_Static_assert(offsetof(lc_lane, turn_longest_epoch) == 64, "hot part: one cache line");
_Static_assert(offsetof(lc_lane, state) == 256, "cold part does not share a line with the hot one");
_Static_assert(offsetof(lc_lane, ended) == 512, "ended ring follows the names");
_Static_assert(sizeof(lc_lane) <= LC_LONG_WORK_OFFSET, "the ring of long work is behind the lane");
_Static_assert(LC_LONG_WORK_OFFSET + LC_LONG_WORK_COUNT * sizeof(lc_long_work) == LC_LANE_BYTES,
               "a lane with its ring fills its stride");

/* ---- slots: one stall each, standing alone ---------------------------------------------------
 * A slot holds a whole stall: its facts, samples, stacks, code and strings, so that it can be read
 * without any other part of the file. All references are byte offsets from the slot's start.
 * Sections only grow while the slot is open, and counts are stored after what they count (release),
 * so a reader that takes the counts first (acquire) sees whole entries at any moment.
 */
#define LC_SLOT_COUNT 16u
#define LC_SLOT_BYTES 131072u
#define LC_SAMPLE_MAX 384u
#define LC_STACK_FRAMES_MAX 256u
#define LC_SLOT_THREADS_MAX 64u
#define LC_SLOT_WAITERS_MAX 8u
#define LC_HOST_MAX 16u

typedef enum {
    LC_SLOT_FREE = 0,
    LC_SLOT_OPEN = 1,  /* busy longer than the sample delay, not yet a stall */
    LC_SLOT_STALL = 2, /* longer than the threshold, still going on */
    LC_SLOT_ENDED = 3  /* over; waits for the drain */
} lc_slot_state;

typedef enum { LC_LEVEL_NONE = 0, LC_LEVEL_STALL = 1, LC_LEVEL_HANG = 2, LC_LEVEL_ANR = 3 } lc_level;

typedef enum {
    LC_GIL_UNKNOWN = 0,
    LC_GIL_FREE = 1,
    LC_GIL_HELD_BY_SELF = 2, /* by the sampled thread */
    LC_GIL_HELD_BY_OTHER = 3
} lc_gil_state;

enum {
    LC_SAMPLE_WAITS_FOR_GIL = 1u << 0,  /* the thread sleeps on the GIL's own condition variable */
    LC_SAMPLE_GC = 1u << 1,             /* this thread was collecting garbage */
    LC_SAMPLE_NO_KERNEL_VIEW = 1u << 2, /* /proc could not be read: kernel fields are meaningless */
    LC_SAMPLE_CALLS_PYTHON = 1u << 3,   /* functions of Python came and went while the stack was read */
    LC_SAMPLE_IN_CIRCLE = 1u << 4 /* it waits for threads that wait for each other: the slot's `circle` */
};

enum {
    LC_STACK_TRUNCATED = 1u << 0, /* outer frames left out at LC_STACK_FRAMES_MAX */
    LC_STACK_INNER_CUT = 1u << 1  /* inner frames left out: they moved while they were read */
};

/* What a thread waits for in a system call. */
typedef enum {
    LC_TARGET_NONE = 0,
    LC_TARGET_FILE = 1,     /* the text is its path */
    LC_TARGET_SOCKET = 2,   /* host:port of the peer, or path of a unix socket */
    LC_TARGET_PIPE = 3,     /* the kernel's name of it, or the path of a fifo */
    LC_TARGET_TERMINAL = 4, /* path */
    LC_TARGET_CHILD = 5,    /* its command; target_pid */
    LC_TARGET_OTHER = 6     /* the kernel's name of it: an epoll set, an event */
} lc_target_kind;

/* What a thread that sleeps in an acquire waits for. */
typedef enum {
    LC_LOCK_NONE = 0,
    LC_LOCK_PLAIN = 1,     /* _thread.lock */
    LC_LOCK_RECURSIVE = 2, /* _thread.RLock */
    LC_LOCK_MODULE = 3,    /* the import lock of a module, whose name is the target's text */
    LC_LOCK_THREAD = 4,    /* the end of a thread */
    /* the result of a Future; in a circle only, its `holder` is the thread that it comes from */
    LC_LOCK_FUTURE = 5,
    /* Lock, RLock... of multiprocessing */
    LC_LOCK_SHARED = 6,
    LC_LOCK_SHARED_RECURSIVE = 7,
    LC_LOCK_SHARED_SEMAPHORE = 8
} lc_lock_kind;

/* How it is known that the thread `holder_tid` holds it. */
typedef enum {
    LC_PROOF_NONE = 0,  /* it is not known */
    LC_PROOF_OWNER = 1, /* the lock names its owner */
    LC_PROOF_WITH = 2   /* the thread is in a `with` block of this lock */
} lc_lock_proof;

#define LC_NO_REF 0u
#define LC_SYSCALL_RUNNING (-1) /* the thread was on a CPU, or not inside a system call */
#define LC_SYSCALL_UNKNOWN (-2)

typedef struct { /* a string: UTF-8, not NUL-terminated; cut at LC_STRING_MAX on a character's edge */
    uint32_t offset;
    uint32_t bytes;
} lc_ref;

#define LC_STRING_MAX 512u

typedef struct {
    lc_ref filename;
    lc_ref qualname;
    uint32_t first_line;
    uint32_t code_flags; /* co_flags */
} lc_code_entry;

_Static_assert(sizeof(lc_code_entry) == 24, "three words");

typedef struct {
    uint32_t code;       /* offset of an lc_code_entry */
    uint32_t line;       /* 0 unknown */
    uint32_t end_line;   /* 0 unknown */
    uint16_t column;     /* UTF-8 bytes from 1, 0 unknown */
    uint16_t end_column; /* one past the last, from 1, 0 unknown */
} lc_frame_entry;

_Static_assert(sizeof(lc_frame_entry) == 16, "two words");

typedef struct { /* followed by `frames` entries of lc_frame_entry, innermost first */
    uint32_t frames;
    uint32_t flags;
    uint64_t hash;
} lc_stack_entry;

typedef struct {
    uint64_t at_ns;        /* monotonic, when the stack was read */
    uint64_t epoch;        /* callback epoch at that time; odd: inside a callback */
    uint64_t on_cpu_ns;    /* of the thread, since its start (schedstat) */
    uint64_t run_queue_ns; /* of the thread, since its start (schedstat) */
    uint64_t voluntary_switches;
    uint64_t involuntary_switches;
    uint64_t major_faults;
    int64_t syscall; /* number, or LC_SYSCALL_* */
    uint64_t syscall_args[3];
    uint32_t stack;        /* offset of an lc_stack_entry, LC_NO_REF none */
    uint32_t holder_stack; /* of holder_tid's thread, LC_NO_REF none or not read */
    uint32_t holder_tid;   /* with a lock_kind: of the lock, 0 unknown; else of the GIL */
    uint8_t gil;           /* lc_gil_state */
    uint8_t thread_state;  /* letter of /proc/TID/stat: R S D T t Z; 0 unknown */
    uint16_t flags;        /* LC_SAMPLE_* */
    uint64_t gc_total_ns;  /* of the process, since the start */
    lc_ref target;         /* what it waits for, or the module of LC_LOCK_MODULE */
    uint32_t target_pid;   /* of the child, 0 none */
    uint8_t target_kind;   /* lc_target_kind */
    uint8_t lock_kind;     /* lc_lock_kind */
    uint8_t lock_proof;    /* lc_lock_proof */
    /* the frame that took it: its number in holder_stack, the outermost is 1; 0 not known */
    uint8_t lock_frame;
} lc_sample_entry;

_Static_assert(sizeof(lc_sample_entry) == 128, "two cache lines");

typedef struct { /* a thread of the process at the time of the hang */
    uint64_t tid;
    uint64_t at_ns;
    uint32_t stack;
    uint8_t thread_state;
    uint8_t holds_gil;
    uint8_t waits_for_gil;
    uint8_t reserved;
} lc_thread_entry;

_Static_assert(sizeof(lc_thread_entry) == 24, "three words");

typedef struct { /* in the heap: the name, at that time, of a thread that the slot refers to */
    uint32_t tid;
    uint32_t before; /* offset of the entry before it, LC_NO_REF none */
    lc_ref name;
} lc_thread_name_entry;

_Static_assert(sizeof(lc_thread_name_entry) == 16, "two words");

typedef struct { /* in the heap: what a thread of a circle waits for */
    uint32_t tid;
    /* offset of the entry of the thread that waits for this one; LC_NO_REF: this is the stalled one */
    uint32_t before;
    uint32_t holder_tid;                       /* of the last entry: a thread of this or of an entry before */
    uint32_t stack;                            /* of `tid`, LC_NO_REF none */
    lc_ref module;                             /* of LC_LOCK_MODULE */
    uint8_t lock_kind, lock_proof, lock_frame; /* as a sample's; the frame is one of the holder's */
    uint8_t has_timeout, reserved[4];          /* 1: the wait ends by itself */
} lc_wait_entry;

_Static_assert(sizeof(lc_wait_entry) == 32, "four words");

enum { /* bits of lc_host_entry.told */
       LC_HOST_PROCESS_CPU = 1u << 0,
       LC_HOST_MAJOR_FAULTS = 1u << 1,
       LC_HOST_SYSTEM = 1u << 2,
       LC_HOST_THROTTLED = 1u << 3,
       LC_HOST_PRESSURE_CPU = 1u << 4,
       LC_HOST_PRESSURE_IO = 1u << 5,
       LC_HOST_PRESSURE_MEMORY = 1u << 6,
       LC_HOST_AVAILABLE = 1u << 7,
       LC_HOST_USED = 1u << 8,
       LC_HOST_PRIORITY = 1u << 9
};

typedef struct { /* thread, process, container and machine at one moment; sums since their start */
    uint64_t at_ns;
    uint64_t told;           /* LC_HOST_*: which of the following are known */
    uint64_t process_cpu_ns; /* all threads */
    uint64_t process_major_faults;
    uint64_t system_busy_ns, system_total_ns; /* all cores; /proc/stat without idle and iowait */
    uint64_t throttled_ns, throttled_periods; /* of the cgroup that has the quota */
    uint64_t pressure_cpu_ns;                 /* PSI, `some`; of the cgroup, or else of the machine */
    uint64_t pressure_io_ns, pressure_memory_ns;
    uint64_t memory_available_bytes;     /* of the machine */
    uint64_t memory_used_bytes;          /* of the cgroup */
    int32_t nice;                        /* of the stalled thread, as the next two */
    uint16_t policy, cores;              /* SCHED_*; how many it may run on, 0 not known */
    uint64_t system_stolen_ns, reserved; /* of the busy time: the hypervisor ran other machines */
} lc_host_entry;

_Static_assert(sizeof(lc_host_entry) == 128, "two cache lines");

typedef struct { /* callbacks of one kind within the stalled turn, that were scheduled at one place */
    lc_ref name; /* {0, 0}: it could not be read */
    lc_word count;
    lc_word total_ns;
    lc_word longest_ns;
    lc_ref site_file; /* who scheduled them; {0, 0}: not known */
    lc_word site_line;
} lc_contributor_entry;

_Static_assert(sizeof(lc_contributor_entry) == 48, "six words");

typedef struct {
    lc_word state;  /* lc_slot_state */
    lc_word serial; /* number of the stall in this process, from 1; changes when the slot is reused */
    uint64_t lane;
    uint64_t lane_generation;
    uint64_t tid;
    lc_word kind;  /* lc_ended_kind; final once ended */
    lc_word epoch; /* of the callback it is about, 0 none (yet) */
    lc_word turn_epoch;
    lc_word begin_ns; /* monotonic; final once ended */
    lc_word turn_begin_ns;
    lc_word end_ns;       /* 0 while it lasts */
    lc_word last_look_ns; /* the watchdog saw it still going on at this time */
    uint64_t threshold_ns;
    lc_word level;       /* lc_level */
    lc_word interval_ns; /* between samples, now */
    lc_word sample_count;
    lc_word samples_dropped_moved; /* the epoch moved while the stack was read */
    lc_word samples_dropped_unreadable;
    lc_word samples_dropped_full;
    lc_word thread_count;
    lc_word heap_used; /* offset one past the last used byte */
    lc_word turn_callbacks;
    lc_word turn_callback_ns;
    lc_word longest_ns;
    lc_word end_cpu_ns;   /* thread CPU time at the end, 0 unknown */
    lc_word queue_ns;     /* how late the callback began */
    lc_word gc_ns_begin;  /* gc_total_ns when the slot was opened */
    lc_word allowance_ns; /* granted by `expect`, 0 none */
    char loop_kind[LC_NAME_BYTES / 2];
    char thread_name[LC_NAME_BYTES];
    /* Names of the work; zero refs where there is none or it could not be read. */
    lc_ref callback; /* qualified name of the callback, or of the task's coroutine */
    lc_ref task;     /* name of the task */
    lc_ref scene;
    uint64_t work_read_ns; /* when these names were read; 0 not yet */
    /* The thread's schedstat at the last look before the stall began; before_at_ns 0: not known. */
    lc_word before_at_ns;
    lc_word before_on_cpu_ns;
    lc_word before_run_queue_ns;
    lc_word host_count;
    lc_word contributor_count;
    lc_word contributors_from_ns; /* the tally counts callbacks that began from then on; 0 there is none */
    lc_word contributors_dropped; /* callbacks for which there was no entry */
    /* other threads that waited for the lock that the thread waits for: the most at one look */
    lc_word waiter_count;
    lc_word waiters[LC_SLOT_WAITERS_MAX]; /* thread ids of the first of them */
    lc_word thread_names;                 /* offset of the last lc_thread_name_entry, LC_NO_REF none */
    lc_word circle;                       /* offset of its last lc_wait_entry, LC_NO_REF none was seen */
    char reserved[16];
    lc_thread_entry threads[LC_SLOT_THREADS_MAX];
    lc_host_entry hosts[LC_HOST_MAX];
    lc_contributor_entry contributors[LC_TALLY_COUNT];
    lc_sample_entry samples[LC_SAMPLE_MAX];
} lc_slot;

#define LC_SLOT_HEAP_OFFSET (sizeof(lc_slot))
_Static_assert(offsetof(lc_slot, threads) == 512, "slot facts: half a KiB");
_Static_assert(offsetof(lc_slot, hosts) == 2048, "hosts start on a line");
_Static_assert(offsetof(lc_slot, samples) == 5632, "samples start on a line");
_Static_assert(sizeof(lc_slot) == 5632 + LC_SAMPLE_MAX * sizeof(lc_sample_entry),
               "the heap follows the samples");
_Static_assert(sizeof(lc_slot) < LC_SLOT_BYTES / 2, "half of a slot is heap: stacks, codes, strings");

/* ---- looks at tasks ---------------------------------------------------------------------------
 * What the tasks of asyncio wait for: the last look, and the one before or the one that is being written. Each
 * is a slot of which only `serial` (of the look, from 1; 0 while it is written) and `heap_used` count, and
 * whose heap is at its end. It begins with an lc_look. */
#define LC_LOOK_COUNT 2u
#define LC_LOOK_BYTES 40960u
#define LC_LOOK_OFFSET (LC_SLOT_BYTES - LC_LOOK_BYTES)
#define LC_LOOK_ENTRIES_MAX 64u

typedef struct {
    uint64_t object;
    lc_ref function; /* that leaves it; {0, 0}: the lock of the condition before it */
} lc_look_held;

typedef struct {    /* a frame of a suspended coroutine */
    uint64_t first; /* address of the first argument, 0 none */
    lc_frame_entry frame;
    uint32_t held; /* offset of lc_look_held: what its `async with` blocks will leave */
    uint32_t held_count;
} lc_look_await;

typedef struct { /* a task; addresses tell objects apart, 0: none */
    uint64_t task, loop, future;
    uint64_t since_ns; /* the look from which on it has waited like this */
    uint32_t count;    /* of tasks that wait at the same places, with this one */
    uint32_t circle;   /* tasks with one number, not 0, wait for each other */
    uint32_t awaits;   /* offset of lc_look_await, outermost first */
    uint16_t await_count;
    uint8_t state; /* lc_task_state of cpython/tasks/tasks.h */
    uint8_t cut;
    lc_ref name, loop_type, callback, future_type, future_callback, end_type;
} lc_look_entry;

typedef struct {
    uint64_t began_ns; /* monotonic */
    uint64_t tasks;    /* of asyncio's C class */
    uint64_t others;   /* objects among them that are not */
    uint64_t groups;   /* distinct places */
    lc_word circles;   /* of tasks that have not moved since the look before */
    lc_word entry_count;
    lc_look_entry entries[LC_LOOK_ENTRIES_MAX]; /* circles first, then the largest groups */
} lc_look;

_Static_assert(sizeof(lc_look_entry) == 96 && sizeof(lc_look_await) == 32, "whole words");
_Static_assert(LC_LOOK_OFFSET > LC_SLOT_HEAP_OFFSET && LC_LOOK_OFFSET % 4096u == 0,
               "its pages are set aside by themselves");

/* ---- the keeper's page ------------------------------------------------------------------------
 * What a keeper says to the process. To the process it is hostile input: nothing follows from it but what is
 * said here. It begins where a page of any size begins, and nothing comes after it: no other part is in
 * memory that a keeper maps.
 */
#define LC_KEEPER_BYTES 16384u
#define LC_KEEPER_ALIGNMENT 65536u /* pages of 64 KiB: the largest of aarch64 */
#define LC_KEEPER_TEXT_BYTES 8192u

typedef struct {
    lc_word pid;           /* of the keeper that serves the file, in its own pid namespace; 0 none yet */
    lc_word beat_ns;       /* monotonic; when it last looked */
    _Atomic uint32_t bell; /* a futex: rung after a text, after `closed`, and by the process itself */
    /* how often a command has asked for something: module/keeper/line.c; no keeper's */
    _Atomic uint32_t errands;
    lc_word closed;      /* 1: the end of the process is stored, and all texts were put */
    lc_word text_number; /* of the text below, from 1; it is put when `text_written` is the number before */
    lc_word text_bytes;
    /* For each slot the serial of a stall that is stored. The watchdog uses a slot again that has ended
     * and has this serial. */
    lc_word taken[LC_SLOT_COUNT];
    /* For each slot the serial of a hang that was judged while it lasts, by a keeper or by the program:
     * the watchdog says nothing of it. */
    lc_word told[LC_SLOT_COUNT];
    char room[LC_KEEPER_BYTES - LC_KEEPER_TEXT_BYTES - (6u + 2u * LC_SLOT_COUNT) * sizeof(lc_word)];
    char text[LC_KEEPER_TEXT_BYTES]; /* whole lines, for the program's stderr */
} lc_keeper;

_Static_assert(sizeof(lc_keeper) == LC_KEEPER_BYTES, "the keeper's page fills its section");
_Static_assert(offsetof(lc_keeper, text) == LC_KEEPER_BYTES - LC_KEEPER_TEXT_BYTES,
               "the text is its last part");

/* ---- signals ----------------------------------------------------------------------------------------
 * Signals that came to the process, in the page of the flight file's header, LC_SIGNALS_OFFSET bytes from
 * its start: a part of version 2 of the format. Before, these bytes were 0. */

#define LC_SIGNALS_OFFSET 2048u
#define LC_SIGNALS_KEPT 8u
#define LC_COMMAND_BYTES 120u

#define LC_STACK_OVER 1u      /* it came where the thread's stack ends */
#define LC_STACK_ALTERNATE 2u /* it came in a handler on an alternate stack, as a crash reporter's are */

typedef struct {
    lc_word sequence; /* 1-based, written last; entry i holds sequences i+1, i+1+LC_SIGNALS_KEPT, ... */
    lc_word number;
    lc_word code; /* si_code, in two's complement; 0, -1 and -6: a process sent it */
    lc_word pid;  /* of the sender; 0: it is in no namespace that this process sees */
    lc_word uid;
    lc_word at_ns; /* monotonic */
    lc_word ends;  /* 1: the program has no handler for it */
    lc_word tid;   /* of the thread that took it; 0: not told */
    /* of the sender, if it lived still: words with blanks between them, or its name; NUL-padded */
    char command[LC_COMMAND_BYTES];
    /* of a fault, bits: LC_STACK_OVER, LC_STACK_ALTERNATE. Before, the last bytes of `command` */
    lc_word stack;
} lc_signal_entry;

typedef struct {
    lc_word seen; /* how many came */
    /* up to which sequence the sender was looked for: later entries have no command yet, whatever is in it */
    lc_word named;
    lc_word reserved[6];
    lc_signal_entry kept[LC_SIGNALS_KEPT];
} lc_signals;

_Static_assert(sizeof(lc_signal_entry) == 192, "three cache lines");
_Static_assert(sizeof(lc_header) <= LC_SIGNALS_OFFSET, "the signals are behind the header");
_Static_assert(LC_SIGNALS_OFFSET + sizeof(lc_signals) <= LC_HEADER_BYTES,
               "the header's page has room for them");
