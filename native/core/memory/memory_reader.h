/* Reading memory that may change or vanish while it is read: never through a plain pointer.
 *
 * The frames of a running thread are freed and reused under the reader's hands; a plain load can
 * fault (CPython #140815, #116008). The kernel copies instead and says how much it could
 * copy: process_vm_writev from one's own process, process_vm_readv from another, or, where seccomp
 * refuses these, pread on /proc/PID/mem.
 *
 * Thread-safe, no lock, no allocation, async-signal-safe; needs no Python. Tests and fuzz targets
 * put their own functions in place of the kernel's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/host/kept_file.h"

typedef struct {
    uint64_t address; /* in the process that is read */
    void *into;
    size_t bytes;
} lc_read_request;

#define LC_READ_BATCH_MAX 64u

typedef struct lc_memory_reader lc_memory_reader;
struct lc_memory_reader {
    /* Copies every request whole, in order, and answers how many were copied whole before the first
     * that was not. `count` is at most LC_READ_BATCH_MAX. */
    size_t (*read)(const lc_memory_reader *self, const lc_read_request *requests, size_t count);
    pid_t pid;
    lc_kept_file mem; /* /proc/PID/mem, where it is needed */
};

typedef enum {
    LC_READER_NONE = 0, /* neither way works here: the portable engine takes over */
    LC_READER_VM_READV = 1,
    LC_READER_PROC_MEM = 2,
    LC_READER_VM_WRITEV = 3
} lc_reader_kind;

/* Finds a way to read the memory of process `pid` (one's own included) that works, by reading `probe`
 * of this process (own pid) or nothing (foreign pid: tried at first use). */
lc_reader_kind lc_memory_reader_open(lc_memory_reader *reader, pid_t pid);
void lc_memory_reader_close(lc_memory_reader *reader);

/* Reads a C string, which may end right before a page that is not there. Its length, `room` where it has no end
 * in so many bytes; 0: there is none. */
uint32_t lc_read_text(const lc_memory_reader *reader, uint64_t address, char *into, uint32_t room);

/* One range; true if it was copied whole. */
static inline bool lc_read(const lc_memory_reader *reader, uint64_t address, void *into, size_t bytes)
{
    const lc_read_request request = {address, into, bytes};
    return __atomic_load_n(&reader->read, __ATOMIC_ACQUIRE)(reader, &request, 1) == 1;
}
