/* Reading one's own memory where the kernel refuses process_vm_readv: by /proc/self/mem, which the program may close. */
#include "core/memory/memory_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/check.h"

/* In the C library's place: as a seccomp filter answers. */
ssize_t process_vm_readv(pid_t pid, const struct iovec *local, unsigned long locals, const struct iovec *remote,
                         unsigned long remotes, unsigned long flags)
{
    (void)pid, (void)local, (void)locals, (void)remote, (void)remotes, (void)flags;
    errno = EPERM;
    return -1;
}

static lc_memory_reader reader;

static bool reads(uint64_t value)
{
    uint64_t copy = 0;
    return lc_read(&reader, (uint64_t)(uintptr_t)&value, &copy, sizeof copy) && copy == value;
}

TEST(memory_is_read_through_its_file)
{
    CHECK(lc_memory_reader_open(&reader, getpid()) == LC_READER_PROC_MEM && reads(7));
    uint64_t copy;
    CHECK(!lc_read(&reader, 1, &copy, sizeof copy));
}

TEST(a_file_of_the_program_is_neither_read_nor_closed)
{
    const int theirs = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    CHECK(dup2(theirs, reader.mem.fd) == reader.mem.fd);
    const int reused = reader.mem.fd;
    CHECK(reads(8));
    lc_memory_reader_close(&reader);
    CHECK(fcntl(reused, F_GETFD) >= 0 && !reads(9));
}

int main(void) { return run_tests(); }
