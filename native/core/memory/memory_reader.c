/* process_vm_readv costs one system call for up to 64 ranges and about 1 us for the first 4 KiB; it
 * needs no privilege for one's own process. Sandboxes (seccomp filters of containers before Linux
 * 4.8, gVisor) may refuse it, where /proc/self/mem mostly still works, at a call a range.
 *
 * It looks up and pins the pages of every range. process_vm_writev to one's own process does so with the
 * pages of the copy alone and takes the ranges as any system call takes its arguments: 24 ranges are
 * copied in 2 us in place of 14, so that what belongs together is copied nearly at once
 * (docs/internals/walker.md). */
#include "core/memory/memory_reader.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static size_t whole_requests(const lc_read_request *requests, size_t count, size_t copied)
{
    size_t done = 0;
    while (done < count && requests[done].bytes <= copied) {
        copied -= requests[done].bytes;
        done++;
    }
    return done;
}

static ssize_t vm_readv(pid_t pid, const lc_read_request *requests, size_t count)
{
    struct iovec local[LC_READ_BATCH_MAX];
    struct iovec remote[LC_READ_BATCH_MAX];
    for (size_t i = 0; i < count; i++) {
        local[i].iov_base = requests[i].into;
        local[i].iov_len = requests[i].bytes;
        remote[i].iov_base = (void *)(uintptr_t)requests[i].address;
        remote[i].iov_len = requests[i].bytes;
    }
    return process_vm_readv(pid, local, count, remote, count, 0);
}

static size_t read_vm(const lc_memory_reader *self, const lc_read_request *requests, size_t count)
{
    if (count == 0 || count > LC_READ_BATCH_MAX) {
        return 0;
    }
    const ssize_t copied = vm_readv(self->pid, requests, count);
    return copied < 0 ? 0 : whole_requests(requests, count, (size_t)copied);
}

/* To the process that calls, whichever that is: after a fork, a process number that was kept is the
 * parent's. A call by its number, since the sanitizers' wrapper takes the ranges for memory that must not
 * change or be freed. */
static ssize_t vm_writev_to_self(const lc_read_request *requests, size_t count)
{
    struct iovec from[LC_READ_BATCH_MAX];
    struct iovec into[LC_READ_BATCH_MAX];
    size_t joined = 0;
    for (size_t i = 0; i < count; i++) {
        from[i].iov_base = (void *)(uintptr_t)requests[i].address;
        from[i].iov_len = requests[i].bytes;
        if (joined > 0 && (char *)into[joined - 1].iov_base + into[joined - 1].iov_len == requests[i].into) {
            into[joined - 1].iov_len += requests[i].bytes;
        } else {
            into[joined].iov_base = requests[i].into;
            into[joined++].iov_len = requests[i].bytes;
        }
    }
    return syscall(SYS_process_vm_writev, getpid(), from, count, into, joined, 0UL);
}

static size_t read_own(const lc_memory_reader *self, const lc_read_request *requests, size_t count)
{
    (void)self;
    if (count == 0 || count > LC_READ_BATCH_MAX) {
        return 0;
    }
    const ssize_t copied = vm_writev_to_self(requests, count);
    if (copied >= 0) {
        return whole_requests(requests, count, (size_t)copied);
    }
    /* An address that no process can have fails the call as a whole: what comes before it is read one by
     * one. */
    size_t done = 0;
    while (count > 1 && done < count &&
           vm_writev_to_self(&requests[done], 1) == (ssize_t)requests[done].bytes) {
        done++;
    }
    return done;
}

static bool pread_whole(int fd, const lc_read_request *request)
{
    size_t done = 0;
    while (done < request->bytes) {
        const ssize_t got =
            pread(fd, (char *)request->into + done, request->bytes - done, (off_t)(request->address + done));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        done += (size_t)got;
    }
    return true;
}

uint32_t lc_read_text(const lc_memory_reader *reader, uint64_t address, char *into, uint32_t room)
{
    enum { PAGE_BYTES = 4096 };
    uint32_t used = 0;
    while (used < room && address != 0) {
        const uint32_t to_page_end = PAGE_BYTES - (uint32_t)((address + used) % PAGE_BYTES);
        const uint32_t part = to_page_end < room - used ? to_page_end : room - used;
        if (!lc_read(reader, address + used, into + used, part)) {
            return 0;
        }
        const char *end = memchr(into + used, '\0', part);
        if (end != NULL) {
            return (uint32_t)(end - into);
        }
        used += part;
    }
    return used;
}

static bool open_mem(lc_kept_file *mem, pid_t pid)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%ld/mem", (long)pid);
    return lc_kept_file_open(mem, path);
}

static size_t read_mem(const lc_memory_reader *self, const lc_read_request *requests, size_t count)
{
    lc_kept_file again = {0}; /* for this reading, where the program closed ours: several threads read */
    const bool is_ours = lc_kept_file_is_ours(&self->mem);
    if (count > LC_READ_BATCH_MAX || !(is_ours || open_mem(&again, self->pid))) {
        return 0;
    }
    size_t done = 0;
    while (done < count && pread_whole(is_ours ? self->mem.fd : again.fd, &requests[done])) {
        done++;
    }
    lc_kept_file_close(&again);
    return done;
}

/* For foreign processes, whose permission shows only when they are read. */
static size_t read_either(const lc_memory_reader *self, const lc_read_request *requests, size_t count)
{
    if (count == 0 || count > LC_READ_BATCH_MAX) {
        return 0;
    }
    const ssize_t copied = vm_readv(self->pid, requests, count);
    if (copied >= 0) {
        return whole_requests(requests, count, (size_t)copied);
    }
    const bool refused = errno == EPERM || errno == ENOSYS;
    return refused && self->mem.fd > 0 ? read_mem(self, requests, count) : 0;
}

static bool reads_probe(const lc_memory_reader *reader)
{
    static const uint64_t probe = UINT64_C(0x6c6f6f7063616e61);
    uint64_t copy = 0;
    return lc_read(reader, (uint64_t)(uintptr_t)&probe, &copy, sizeof copy) && copy == probe;
}

static size_t read_nothing(const lc_memory_reader *self, const lc_read_request *requests, size_t count)
{
    (void)self;
    (void)requests;
    (void)count;
    return 0;
}

static lc_reader_kind find_way(lc_memory_reader *fresh)
{
    if (fresh->pid != getpid()) {
        fresh->read = read_either;
        open_mem(&fresh->mem, fresh->pid);
        return LC_READER_VM_READV;
    }
    if (reads_probe(fresh)) {
        return LC_READER_VM_WRITEV;
    }
    fresh->read = read_vm;
    if (reads_probe(fresh)) {
        return LC_READER_VM_READV;
    }
    if (open_mem(&fresh->mem, fresh->pid)) {
        fresh->read = read_mem;
        if (reads_probe(fresh)) {
            return LC_READER_PROC_MEM;
        }
    }
    lc_memory_reader_close(fresh);
    return LC_READER_NONE;
}

/* `read` is never NULL: a thread without the GIL may still be reading names of work that it has ended. */

lc_reader_kind lc_memory_reader_open(lc_memory_reader *reader, pid_t pid)
{
    lc_memory_reader fresh = {.read = read_own, .pid = pid};
    const lc_reader_kind kind = find_way(&fresh);
    reader->pid = fresh.pid;
    reader->mem = fresh.mem;
    __atomic_store_n(&reader->read, fresh.read, __ATOMIC_RELEASE);
    return kind;
}

void lc_memory_reader_close(lc_memory_reader *reader)
{
    __atomic_store_n(&reader->read, read_nothing, __ATOMIC_RELEASE);
    lc_kept_file_close(&reader->mem);
}
