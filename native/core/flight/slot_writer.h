/* Writing one stall into its slot: stacks, codes and strings are stored once and referred to.
 *
 * The watchdog's thread only; no allocation. Every count is stored (release) after what it counts, so
 * that a reader, or a kill at any instruction, finds whole entries.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/flight/flight_format.h"
#include "core/watchdog/frame_source.h"

/* What a writer remembers of the slot it fills; about 16 KiB, set aside with the watchdog. */
enum { LC_KNOWN_CODES = 512, LC_KNOWN_STACKS = 256, LC_KNOWN_STRINGS = 128, LC_KNOWN_THREADS = 96 };

typedef struct {
    uint64_t key; /* a code's serial, a stack's hash; 0: free */
    uint32_t offset;
} lc_known_place;

typedef struct lc_slot_writer {
    lc_slot *slot; /* NULL: not in use */
    lc_known_place codes[LC_KNOWN_CODES];
    lc_known_place stacks[LC_KNOWN_STACKS];
    struct {
        uint64_t hash;
        lc_ref ref;
    } strings[LC_KNOWN_STRINGS];
    uint32_t threads[LC_KNOWN_THREADS]; /* numbers of those whose names are stored */
    uint32_t thread_count;
    /* of each entry of the lane's tally: its contributor's number, from 1 */
    uint8_t contributors[LC_TALLY_COUNT];
    uint64_t tally_from;       /* of the tally that they are of */
    uint64_t host_interval_ns; /* between readings of the host, now */
    uint32_t pause;            /* so many samples until it is tried again to make room; 0: at once */
} lc_slot_writer;

/* Takes the (FREE) slot for a new stall: clears its facts and counts. The state is left FREE. */
void lc_slot_writer_begin(lc_slot_writer *writer, lc_slot *slot);

/* A stack as the heap has it. */
typedef struct {
    lc_stack_entry head;
    lc_frame_entry frames[LC_STACK_FRAMES_MAX];
} lc_whole_stack;

static inline uint64_t lc_stack_bytes(uint32_t frames)
{
    return sizeof(lc_stack_entry) + frames * sizeof(lc_frame_entry);
}

uint64_t lc_slot_room(const lc_slot *slot);

/* Stores `count` bytes in the heap, at a multiple of 8; their offset, or LC_NO_REF where there is no room.
 * What they are is known once something that is stored later refers to them. */
uint32_t lc_slot_append(lc_slot *slot, const void *bytes, uint64_t count);

/* Stores a code object, or finds it; the same. */
uint32_t lc_slot_put_code(lc_slot_writer *writer, const lc_code_facts *code);

/* Stores a stack, or finds it; its offset, or LC_NO_REF where the heap is full. */
uint32_t lc_slot_put_stack(lc_slot_writer *writer, const lc_stack *stack);

/* Where the code of this serial, or the stack of this hash, is known, or is to be. */
lc_known_place *lc_slot_code_place(lc_slot_writer *writer, uint64_t serial);
lc_known_place *lc_slot_stack_place(lc_slot_writer *writer, uint64_t hash);

/* Stores a text, or finds it; {0, 0} for an empty text or where the heap is full. */
lc_ref lc_slot_put_text(lc_slot_writer *writer, lc_text text);

/* Appends a sample; false where there is no room. */
bool lc_slot_put_sample(lc_slot_writer *writer, const lc_sample_entry *sample);

/* Drops every second sample, so that a long stall stays covered in bounded room. */
void lc_slot_thin_samples(lc_slot_writer *writer);

/* Appends a reading of the host; where the table is full, every second one goes first and the distance
 * doubles. */
void lc_slot_put_host(lc_slot_writer *writer, const lc_host_entry *host);

/* Appends a thread; false where there is no room. */
bool lc_slot_put_thread(lc_slot_writer *writer, const lc_thread_entry *thread);

/* Whether the name of this thread is to be stored: it is not there yet, and there is room. */
bool lc_slot_wants_thread_name(const lc_slot_writer *writer, uint64_t tid);

/* Stores it, unless it is empty. */
void lc_slot_put_thread_name(lc_slot_writer *writer, uint64_t tid, lc_text name);

/* ---- slot_move.c: a stall goes on in another slot, where there is room for what comes ---------------- */

/* Where in the new slot is what was at each multiple of 8 bytes in the old one; 0: it has not been moved. */
typedef struct {
    uint32_t places[LC_SLOT_BYTES / 8u];
} lc_moved;

/* Copies the stall of `from` into the FREE slot of `to`, which is cleared first: all of it but samples, of
 * which it keeps one in `one_of`, and what only the others referred to. The old slot stays as it is, and
 * the new one FREE, so that a reader, or a kill at any instruction, finds the stall whole. The watchdog's
 * thread; `moved` is scratch. */
void lc_slot_move(lc_slot_writer *to, const lc_slot_writer *from, uint64_t one_of, lc_moved *moved);
