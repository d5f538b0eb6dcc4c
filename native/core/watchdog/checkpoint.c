#include "core/watchdog/checkpoint.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

#include "core/lane/lane.h"

void lc_checkpoint_open(lc_checkpoint *checkpoint, const char *path, const lc_bell *life)
{
    checkpoint->life = life;
    checkpoint->file = (lc_kept_file){0};
    checkpoint->path[0] = '\0';
    if (path != NULL && strlen(path) < sizeof checkpoint->path) {
        strcpy(checkpoint->path, path);
    }
}

void lc_checkpoint_close(lc_checkpoint *checkpoint) { lc_kept_file_close(&checkpoint->file); }

static bool put(const lc_checkpoint *checkpoint, const lc_flight *flight, uint64_t offset, uint64_t bytes)
{
    while (bytes > 0) {
        if (!lc_life_is(checkpoint->life, LC_LIFE_RUNS)) {
            return false;
        }
        const ssize_t wrote = pwrite(checkpoint->file.fd, flight->base + offset, bytes, (off_t)offset);
        if (wrote < 0 && errno != EINTR) {
            return false;
        }
        if (wrote > 0) {
            offset += (uint64_t)wrote;
            bytes -= (uint64_t)wrote;
        }
    }
    return true;
}

static bool put_section(const lc_checkpoint *checkpoint, const lc_flight *flight, int section)
{
    const lc_section *s = &flight->header->sections[section];
    return put(checkpoint, flight, s->offset, s->stride * s->count);
}

static bool make_file(lc_checkpoint *checkpoint, uint64_t bytes)
{
    if (!lc_kept_file_take(&checkpoint->file,
                           open(checkpoint->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600))) {
        return false;
    }
    /* The lock says later whether the file's process lives, in any pid namespace. */
    (void)flock(checkpoint->file.fd, LOCK_EX | LOCK_NB);
    return ftruncate(checkpoint->file.fd, (off_t)bytes) == 0;
}

/* Copies the state of free slots, which may have been in use at an earlier copy. */
static bool put_free_slots(const lc_checkpoint *checkpoint, const lc_flight *flight)
{
    const lc_section *slots = &flight->header->sections[LC_SECTION_SLOTS];
    const uint64_t used = atomic_load_explicit(&slots->used, memory_order_acquire);
    bool is_put = true;
    for (uint64_t i = 0; is_put && i < used && i < slots->count; i++) {
        const lc_slot *slot = lc_flight_slot(flight, i);
        is_put = LC_LOAD(slot->state) != LC_SLOT_FREE ||
                 put(checkpoint, flight, slots->offset + i * slots->stride, sizeof slot->state);
    }
    return is_put;
}

/* The header comes last: it makes the file one. */
static bool put_all(const lc_checkpoint *checkpoint, const lc_flight *flight, uint64_t lane,
                    const lc_slot *slot)
{
    const lc_section *lanes = &flight->header->sections[LC_SECTION_LANES];
    const uint64_t slot_at = (uint64_t)((const uint8_t *)slot - flight->base);
    return put_section(checkpoint, flight, LC_SECTION_FACTS) &&
           put_section(checkpoint, flight, LC_SECTION_COUNTERS) &&
           put_section(checkpoint, flight, LC_SECTION_GC) &&
           put(checkpoint, flight, lanes->offset + lane * lanes->stride, lanes->stride) &&
           put(checkpoint, flight, slot_at, LC_SLOT_BYTES) && put_free_slots(checkpoint, flight) &&
           put(checkpoint, flight, 0, LC_HEADER_BYTES);
}

bool lc_checkpoint_write(lc_checkpoint *checkpoint, const lc_flight *flight, uint64_t lane,
                         const lc_slot *slot)
{
    if (checkpoint->path[0] == '\0') {
        return true;
    }
    if (!lc_life_is(checkpoint->life, LC_LIFE_RUNS)) {
        return false;
    }
    const bool there = lc_kept_file_is_ours(&checkpoint->file) || make_file(checkpoint, flight->bytes);
    const bool written = there && put_all(checkpoint, flight, lane, slot);
    if (!written && !lc_life_is(checkpoint->life, LC_LIFE_RUNS)) {
        return false;
    }
    lc_flight_count(flight, written ? LC_COUNTER_checkpoints_written : LC_COUNTER_checkpoints_failed, 1);
    return true;
}
