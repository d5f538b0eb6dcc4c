#include "core/flight/flight.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>

#include "core/flight/set_aside.h"
#include "core/host/process_facts.h"

#define PAGE 4096u
/* Of its addresses: all slots, and a score of lanes. Where there is no room for them the file is not made,
 * and does not grow. */
#define MOSTLY_USED (UINT64_C(5) << 19)

static uint64_t up_to(uint64_t bytes, uint64_t multiple)
{
    return (bytes + multiple - 1u) / multiple * multiple;
}

/* Lays the sections out; returns the size of the file. */
static uint64_t lay_out(lc_section sections[LC_SECTION_COUNT], lc_section *looks)
{
    static const struct {
        uint64_t stride, count;
    } shape[LC_SECTION_COUNT] = {
        [LC_SECTION_FACTS] = {LC_FACTS_BYTES, 1},
        [LC_SECTION_COUNTERS] = {sizeof(lc_word), LC_COUNTER_ROOM},
        [LC_SECTION_GC] = {sizeof(lc_gc_entry), LC_GC_COUNT},
        [LC_SECTION_LANES] = {LC_LANE_BYTES, LC_LANE_COUNT},
        [LC_SECTION_SLOTS] = {LC_SLOT_BYTES, LC_SLOT_COUNT},
        [LC_SECTION_KEEPER] = {LC_KEEPER_BYTES, 1},
    };
    uint64_t at = LC_HEADER_BYTES;
    for (int i = 0; i < LC_SECTION_COUNT; i++) {
        if (i == LC_SECTION_KEEPER) { /* nothing is behind it */
            *looks = (lc_section){.offset = at, .stride = LC_SLOT_BYTES, .count = LC_LOOK_COUNT};
            at = up_to(at + LC_LOOK_COUNT * LC_SLOT_BYTES, LC_KEEPER_ALIGNMENT);
        }
        sections[i].offset = up_to(at, PAGE);
        sections[i].stride = shape[i].stride;
        sections[i].count = shape[i].count;
        at = sections[i].offset + shape[i].stride * shape[i].count;
    }
    return up_to(at, PAGE);
}

static void fill_header(lc_flight *flight, const lc_section sections[LC_SECTION_COUNT],
                        const lc_section *looks)
{
    lc_header *header = flight->header;
    header->version = LC_FLIGHT_VERSION;
    header->byte_order = LC_BYTE_ORDER_MARK;
    header->file_bytes = flight->bytes;
    header->pid = (uint64_t)getpid();
    header->parent_pid = (uint64_t)getppid();
    header->process_start = lc_process_start(0);
    header->pid_namespace = lc_pid_namespace();
    lc_boot_id(header->boot_id);
    header->clock_kind = lc_clock_chosen;
    memcpy(header->sections, sections, sizeof header->sections);
    memcpy(&header->looks, looks, sizeof header->looks);
    atomic_store_explicit(&header->sections[LC_SECTION_COUNTERS].used, LC_COUNTER_COUNT,
                          memory_order_relaxed);
    atomic_store_explicit(&header->sections[LC_SECTION_KEEPER].used, 1, memory_order_relaxed);
    lc_flight_begin_clocks(flight);
    header->started_ns = flight->paired.ns;
    const uint64_t wall_ns = lc_clock_read_ns(CLOCK_REALTIME);
    header->anchor_wall_ns = (int64_t)(wall_ns - (lc_now_ns() - header->anchor_monotonic_ns));
    atomic_store_explicit(&header->state, LC_PROCESS_RUNNING, memory_order_relaxed);
    /* The magic comes last: a file without it is still being made. */
    atomic_thread_fence(memory_order_release);
    memcpy(header->magic, LC_FLIGHT_MAGIC, sizeof header->magic);
}

static int set_aside(int fd, uint64_t offset, uint64_t bytes)
{
    return lc_room_beside(fd) < MOSTLY_USED ? ENOSPC : lc_set_aside(fd, offset, bytes);
}

static int map_new_file(lc_flight *flight, uint64_t bytes, const lc_section *sections)
{
    const int fd = flight->file.fd;
    if (ftruncate(fd, (off_t)bytes) != 0) {
        return errno;
    }
    /* With the first lane and slot: a place without room for them is of no use. */
    int error = set_aside(fd, 0, sections[LC_SECTION_LANES].offset + LC_LANE_BYTES);
    error = error ? error : set_aside(fd, sections[LC_SECTION_SLOTS].offset, LC_SLOT_BYTES);
    error = error ? error : set_aside(fd, sections[LC_SECTION_KEEPER].offset, LC_KEEPER_BYTES);
    if (error) {
        return error;
    }
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED) {
        return errno;
    }
    flight->base = base;
    flight->bytes = bytes;
    return 0;
}

static int open_file(const char *path, int more)
{
    return open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | more, 0600);
}

int lc_flight_create(lc_flight *flight, const char *path)
{
    lc_section sections[LC_SECTION_COUNT], looks;
    memset(sections, 0, sizeof sections);
    const uint64_t bytes = lay_out(sections, &looks);
    memset(flight, 0, sizeof *flight);
    if (strlen(path) >= sizeof flight->path) {
        return ENAMETOOLONG;
    }
    strcpy(flight->path, path);
    if (!lc_kept_file_take(&flight->file, open_file(path, O_CREAT | O_EXCL))) {
        return errno;
    }
    /* Tells readers in other pid namespaces that this process lives; gone with it, however it ends. */
    (void)flock(flight->file.fd, LOCK_EX | LOCK_NB);
    const int error = map_new_file(flight, bytes, sections);
    if (error) {
        lc_kept_file_close(&flight->file);
        unlink(path);
        return error;
    }
    flight->header = (lc_header *)flight->base;
    flight->counters = (lc_word *)(flight->base + sections[LC_SECTION_COUNTERS].offset);
    flight->collections = (lc_gc_entry *)(flight->base + sections[LC_SECTION_GC].offset);
    flight->keeper = (lc_keeper *)(flight->base + sections[LC_SECTION_KEEPER].offset);
    lc_clock_choose();
    fill_header(flight, sections, &looks);
    return 0;
}

void lc_flight_say(lc_flight *flight, lc_process_state state)
{
    lc_header *header = flight->header;
    atomic_store_explicit(&header->ended_ns, state == LC_PROCESS_RUNNING ? 0u : lc_now_ns(),
                          memory_order_relaxed);
    atomic_store_explicit(&header->state, state, memory_order_release);
}

void lc_flight_leave(lc_flight *flight)
{
    if (flight->base != NULL) {
        lc_let_go_of_pages(flight->base, flight->bytes);
        lc_kept_file_close(&flight->file);
    }
}

void lc_flight_close(lc_flight *flight, bool ended)
{
    if (flight->base == NULL) {
        return;
    }
    if (ended) {
        lc_flight_say(flight, LC_PROCESS_ENDED);
    }
    if (flight->is_stored_to) {
        lc_let_go_of_pages(flight->base, flight->bytes);
    } else {
        munmap(flight->base, flight->bytes);
    }
    lc_kept_file_close(&flight->file);
    memset(flight, 0, sizeof *flight);
}

bool lc_flight_set_facts(lc_flight *flight, const char *json, size_t bytes)
{
    lc_section *section = &flight->header->sections[LC_SECTION_FACTS];
    if (bytes > LC_FACTS_BYTES) {
        return false;
    }
    atomic_store_explicit(&section->used, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    memcpy(flight->base + section->offset, json, bytes);
    atomic_store_explicit(&section->used, bytes, memory_order_release);
    return true;
}

void *lc_flight_at(const lc_flight *flight, int section, uint64_t index)
{
    const lc_section *s = &flight->header->sections[section];
    return flight->base + s->offset + index * s->stride;
}

/* Where the program has closed the descriptor (or the drain, which only reads, has got its number for the
 * same file): by path, and for this once, since any thread may come here. */
static bool set_aside_later(const lc_flight *flight, uint64_t offset, uint64_t bytes)
{
    lc_kept_file again;
    int error = lc_kept_file_is_ours(&flight->file) ? set_aside(flight->file.fd, offset, bytes) : EBADF;
    if (error == EBADF && lc_kept_file_take(&again, open_file(flight->path, 0))) {
        const bool is_same = again.device == flight->file.device && again.inode == flight->file.inode;
        error = is_same ? set_aside(again.fd, offset, bytes) : EBADF;
        lc_kept_file_close(&again);
    }
    return error == 0;
}

void *lc_flight_claim(lc_flight *flight, int section, uint64_t index)
{
    lc_section *s = &flight->header->sections[section];
    if (index >= s->count) {
        return NULL;
    }
    if (index >= atomic_load_explicit(&s->used, memory_order_acquire)) {
        if (index > 0 && !set_aside_later(flight, s->offset + index * s->stride, s->stride)) {
            return NULL;
        }
        atomic_store_explicit(&s->used, index + 1u, memory_order_release);
    }
    return lc_flight_at(flight, section, index);
}

lc_slot *lc_flight_look_slot(lc_flight *flight, uint64_t index)
{
    lc_section *s = &flight->header->looks;
    const uint64_t at = s->offset + index * s->stride;
    if (index >= atomic_load_explicit(&s->used, memory_order_acquire)) {
        if (!set_aside_later(flight, at, PAGE) ||
            !set_aside_later(flight, at + LC_LOOK_OFFSET, LC_LOOK_BYTES)) {
            return NULL;
        }
        atomic_store_explicit(&s->used, index + 1u, memory_order_release);
    }
    return (lc_slot *)(flight->base + at);
}
