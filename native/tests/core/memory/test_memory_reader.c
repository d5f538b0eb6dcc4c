/* Reading one's own memory where the kernel refuses process_vm_writev and process_vm_readv: by
 * /proc/self/mem, which the program may close. */
#include "core/memory/memory_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/check.h"

static bool refuses_writev = true;

/* These two in the C library's place: as a seccomp filter answers. */
long syscall(long number, ...)
{
    va_list arguments;
    va_start(arguments, number);
    const pid_t pid = va_arg(arguments, pid_t);
    const struct iovec *from = va_arg(arguments, const struct iovec *);
    const size_t count = va_arg(arguments, size_t);
    const struct iovec *into = va_arg(arguments, const struct iovec *);
    const size_t joined = va_arg(arguments, size_t);
    va_end(arguments);
    if (number != SYS_process_vm_writev || refuses_writev) {
        errno = EPERM;
        return -1;
    }
    return process_vm_writev(pid, from, count, into, joined, 0);
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *local, unsigned long locals,
                         const struct iovec *remote, unsigned long remotes, unsigned long flags)
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

TEST(where_it_may_memory_is_written_to_itself)
{
    refuses_writev = false;
    CHECK(lc_memory_reader_open(&reader, getpid()) == LC_READER_VM_WRITEV && reads(7));
    uint64_t a = 1, b = 2, c = 3, copies[3] = {0};
    const lc_read_request row[] = {{(uint64_t)(uintptr_t)&a, &copies[0], 8},
                                   {(uint64_t)(uintptr_t)&b, &copies[1], 8},
                                   {(uint64_t)(uintptr_t)&c, &copies[2], 8}};
    CHECK(reader.read(&reader, row, 3) == 3 && copies[0] == 1 && copies[1] == 2 && copies[2] == 3);
}

TEST(what_cannot_be_read_ends_the_row)
{
    static const uint64_t nowhere[] = {8, UINT64_C(1) << 50}; /* not mapped; of no process */
    for (int i = 0; i < 2; i++) {
        uint64_t a = 4, copies[3] = {0};
        const lc_read_request row[] = {{(uint64_t)(uintptr_t)&a, &copies[0], 8},
                                       {nowhere[i], &copies[1], 8},
                                       {(uint64_t)(uintptr_t)&a, &copies[2], 8}};
        CHECK(reader.read(&reader, row, 3) == 1 && copies[0] == 4 && copies[2] == 0);
        CHECK(reader.read(&reader, &row[1], 1) == 0);
    }
    lc_memory_reader_close(&reader);
}

/* A number that was kept would lead to the parent: into its memory. */
TEST(after_a_fork_a_process_reads_itself)
{
    static volatile uint64_t value = 1;
    static uint64_t copy;
    CHECK(lc_memory_reader_open(&reader, getpid()) == LC_READER_VM_WRITEV);
    int told[2];
    CHECK(pipe(told) == 0);
    const pid_t child = fork();
    if (child == 0) {
        value = 2;
        const bool is_own = lc_read(&reader, (uint64_t)(uintptr_t)&value, &copy, sizeof copy) && copy == 2;
        _exit(write(told[1], &is_own, sizeof is_own) != (ssize_t)sizeof is_own);
    }
    bool is_own = false;
    CHECK(child > 0 && read(told[0], &is_own, sizeof is_own) == (ssize_t)sizeof is_own && is_own &&
          copy == 0);
    close(told[0]);
    close(told[1]);
    CHECK(waitpid(child, NULL, 0) == child);
    lc_memory_reader_close(&reader);
}

static atomic_bool over;

static void *keep_reading(void *unused)
{
    (void)unused;
    while (!atomic_load(&over)) {
        uint64_t value = 5, copy = 5;
        CHECK(!lc_read(&reader, (uint64_t)(uintptr_t)&value, &copy, sizeof copy) || copy == 5);
        CHECK(copy == 5);
    }
    return NULL;
}

/* A thread without the GIL may name what it has just ended while the engine stops and the next one starts. */
TEST(what_another_thread_reads_with_comes_and_goes)
{
    enum { TIMES = 20000 };
    pthread_t thread;
    lc_memory_reader_close(&reader);
    CHECK(pthread_create(&thread, NULL, keep_reading, NULL) == 0);
    for (int i = 0; i < TIMES; i++) {
        CHECK(lc_memory_reader_open(&reader, getpid()) == LC_READER_VM_WRITEV);
        lc_memory_reader_close(&reader);
    }
    atomic_store(&over, true);
    CHECK(pthread_join(thread, NULL) == 0);
}

int main(void) { return run_tests(); }
