#include "core/methods/calls.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "core/flight/set_aside.h"
#include "core/host/process_facts.h"

/* A name takes a third of a microsecond, a look at its file one or two. */
enum { WORDS_LEAST = 1 << 12, NAMES_MOST = 1 << 15, LOOKS_MOST = 1 << 11 };

static uint64_t bytes_for(uint64_t words) { return LC_CALLS_WORDS_OFFSET + words * sizeof(uint64_t); }

uint64_t lc_calls_room(const struct statvfs *folder, uint64_t others, uint64_t made)
{
    const uint64_t room = lc_room(folder, made), quarter = folder->f_blocks / 4u * folder->f_frsize;
    const uint64_t share = quarter > others ? quarter - others : 0;
    return folder->f_blocks == 0 || room < share ? room : share;
}

/* Of the name `loopcanary-1000-...`: how much of it names the user. In a folder of the user's own names
 * begin otherwise: 0. */
static size_t user_part(const char *name)
{
    static const char product[] = "loopcanary-";
    const size_t begin = sizeof product - 1u;
    return strncmp(name, product, begin) == 0 ? begin + strcspn(name + begin, "-") + 1u : 0u;
}

/* What other rings of this user take in the folder of this one, of all processes, also of dead ones.
 * UINT64_MAX: it cannot be read, or has too many names, which anybody may put there. */
static uint64_t bytes_of_others(const char *path)
{
    char folder[PATH_MAX];
    const char *name = strrchr(path, '/') + 1, *kind = strchr(name, '.');
    const size_t user = user_part(name), same = strcspn(kind, "0123456789"); /* behind it, a ring's number */
    (void)snprintf(folder, sizeof folder, "%.*s", (int)(name - path), path);
    DIR *all = opendir(folder);
    if (all == NULL) {
        return UINT64_MAX;
    }
    uint64_t bytes = 0;
    unsigned names = 0, looks = 0;
    for (struct dirent *one; names <= NAMES_MOST && looks <= LOOKS_MOST && (one = readdir(all)) != NULL;
         names++) {
        struct stat facts;
        const char *its = strchr(one->d_name, '.');
        if (its != NULL && strncmp(one->d_name, name, user) == 0 && strncmp(its, kind, same) == 0 &&
            strcmp(one->d_name, name) != 0 && ++looks <= LOOKS_MOST &&
            fstatat(dirfd(all), one->d_name, &facts, AT_SYMLINK_NOFOLLOW) == 0 && facts.st_uid == geteuid()) {
            bytes += (uint64_t)facts.st_size;
        }
    }
    closedir(all);
    return names <= NAMES_MOST && looks <= LOOKS_MOST ? bytes : UINT64_MAX;
}

static uint64_t room_for(int fd, uint64_t others, uint64_t made)
{
    struct statvfs folder;
    return fstatvfs(fd, &folder) == 0 ? lc_calls_room(&folder, others, made) : UINT64_MAX;
}

/* Sets blocks aside for as many words as there is room for; 0: for none, and why. Another process may make
 * a ring meanwhile: the file has its size before the others are counted, so that the later one sees both,
 * and gives way. */
static uint64_t make_room(int fd, const char *path, uint64_t words, int *why)
{
    const uint64_t addresses = lc_spare_addresses();
    while (ftruncate(fd, (off_t)bytes_for(words)) != 0) { /* a limit of files (RLIMIT_FSIZE) */
        *why = errno;
        if ((words /= 2u) < WORDS_LEAST) {
            return 0;
        }
    }
    const uint64_t others = bytes_of_others(path);
    for (; words >= WORDS_LEAST; words /= 2u) {
        const uint64_t bytes = bytes_for(words);
        *why = bytes > addresses                 ? ENOMEM
               : bytes > room_for(fd, others, 0) ? ENOSPC
                                                 : lc_set_aside(fd, 0, bytes);
        if (*why == 0 && bytes <= room_for(fd, others, bytes)) {
            return words;
        }
        *why = *why == 0 ? ENOSPC : *why;
        /* gives back what was set aside before there was no more */
        if (ftruncate(fd, (off_t)bytes_for(words / 2u)) != 0) {
            break;
        }
    }
    return 0;
}

static void fill_header(lc_calls *calls, uint64_t words, uint64_t rate_q32)
{
    lc_calls_header *header = calls->header;
    /* Ticks are never slower than one a microsecond: cntvct has 1 MHz and more, by the architecture. */
    const unsigned __int128 us_q64 = ((unsigned __int128)rate_q32 << 32) / 1000u;
    header->version = LC_CALLS_VERSION;
    header->byte_order = LC_CALLS_BYTE_ORDER;
    header->file_bytes = calls->bytes;
    header->words = words;
    header->us_q64 = us_q64 > UINT64_MAX ? UINT64_MAX : (uint64_t)us_q64;
    calls->us_q64 = header->us_q64;
    /* The magic comes last: a file without it is still being made. */
    atomic_thread_fence(memory_order_release);
    memcpy(header->magic, LC_CALLS_MAGIC, sizeof header->magic);
}

int lc_calls_create(lc_calls *calls, const char *path, uint64_t words, uint64_t rate_q32)
{
    memset(calls, 0, sizeof *calls);
    const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return errno;
    }
    int error = 0;
    words = make_room(fd, path, words, &error);
    uint8_t *base = MAP_FAILED;
    if (words != 0) {
        calls->bytes = bytes_for(words);
        base = mmap(NULL, calls->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        error = base == MAP_FAILED ? errno : 0;
    }
    close(fd);
    if (base == MAP_FAILED) {
        unlink(path);
        return error != 0 ? error : EINVAL;
    }
    calls->header = (lc_calls_header *)base;
    calls->open = (lc_open_call *)(base + LC_CALLS_OPEN_OFFSET);
    calls->slow = (lc_slow_call *)(base + LC_CALLS_SLOW_OFFSET);
    calls->slow_us = INT64_MAX;
    calls->marks = (uint64_t *)(base + LC_CALLS_MARKS_OFFSET);
    calls->words = (uint64_t *)(base + LC_CALLS_WORDS_OFFSET);
    calls->mask = words - 1u;
#ifdef MADV_POPULATE_READ
    /* A page fault a page would be 8 ns a call until the ring is full. Linux 5.14 and later; 0.7 ms for 8
     * MB. */
    (void)madvise(base, calls->bytes, MADV_POPULATE_READ);
#endif
    fill_header(calls, words, rate_q32);
    return 0;
}

void lc_calls_begin(lc_calls *calls, uint64_t tid)
{
    lc_calls_header *header = calls->header;
    lc_calls_set_depth(calls, 0);
    calls->written = calls->told_us = 0;
    atomic_store_explicit(&header->written, 0, memory_order_relaxed);
    atomic_store_explicit(&header->at_work, 0, memory_order_relaxed);
    atomic_store_explicit(&header->slow, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    calls->base_ticks = lc_now_ticks();
    header->base_ticks = calls->base_ticks;
    header->tid = tid;
    atomic_store_explicit(&header->closed_ns, 0, memory_order_relaxed);
    header->opened_ns = lc_now_ns();
}

void lc_calls_end(lc_calls *calls)
{
    atomic_store_explicit(&calls->header->closed_ns, lc_now_ns(), memory_order_release);
}

void lc_calls_let_go(const lc_calls *calls)
{
    if (calls->header != NULL) {
        lc_let_go_of_pages(calls->header, calls->bytes);
    }
}

void lc_calls_close(lc_calls *calls)
{
    if (calls->header != NULL) {
        munmap(calls->header, calls->bytes);
        calls->header = NULL;
    }
}

void lc_calls_enter(lc_calls *calls, uint32_t id)
{
    lc_calls_enter_at(calls, id, lc_calls_us(calls, lc_now_ticks()));
}

void lc_calls_begin_work(lc_calls *calls, uint32_t number)
{
    const uint64_t us = lc_calls_us(calls, lc_now_ticks());
    lc_calls_put(calls, LC_CALLS_IN | (uint64_t)number << LC_CALLS_TIME_BITS | (us & LC_CALLS_TIME_MASK), us);
    atomic_store_explicit(&calls->header->at_work, calls->depth << 32 | number, memory_order_release);
}

static bool unwind_to(lc_calls *calls, uint32_t id)
{
    uint64_t depth = calls->depth;
    if (depth > LC_CALLS_OPEN_MAX) { /* not noted: taken for the innermost */
        lc_calls_set_depth(calls, depth - 1u);
        return true;
    }
    while (depth > 0 && calls->open[depth - 1u].id != id) {
        depth--;
    }
    if (depth > 0) {
        lc_calls_set_depth(calls, depth - 1u);
    }
    return depth > 0;
}

bool lc_calls_leave(lc_calls *calls, uint32_t id)
{
    if (!unwind_to(calls, id)) {
        return false;
    }
    const uint64_t us = lc_calls_us(calls, lc_now_ticks());
    lc_calls_leave_at(calls, id, us);
    return calls->depth < LC_CALLS_OPEN_MAX && lc_calls_was_slow(calls, us);
}

bool lc_calls_has_begun_in_last(const lc_calls *calls, uint64_t ticks)
{
    return ticks > calls->base_ticks && lc_calls_us(calls, ticks) >= calls->open[calls->depth].us;
}

bool lc_calls_note_slow(lc_calls *calls)
{
    const lc_open_call *call = &calls->open[calls->depth];
    if (calls->told_us > call->us) {
        return false;
    }
    calls->told_us = call->us + 1u;
    const uint64_t number = atomic_load_explicit(&calls->header->slow, memory_order_relaxed);
    /* its end: the lower bits of the time */
    const uint64_t last = calls->words[(calls->written - 1u) & calls->mask];
    const uint64_t took_us = (last - call->us) & LC_CALLS_TIME_MASK;
    calls->slow[number % LC_CALLS_SLOW_MAX] =
        (lc_slow_call){call->id, call->us, call->us + took_us, calls->written};
    atomic_store_explicit(&calls->header->slow, number + 1u, memory_order_release);
    return true;
}
