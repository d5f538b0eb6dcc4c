/* What a call works on, by name; asked of this process's own descriptors, sockets, paths and children. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/check.h"
#include "core/clock/clock.h"
#include "core/waits/wait_target.h"

#ifndef SO_PEERNAME
#define SO_PEERNAME 28
#endif

static lc_memory_reader reader;
static char folder[] = "/tmp/loopcanary-waits-XXXXXX";

static lc_target asked(int64_t number, uint64_t a, uint64_t b, uint64_t c)
{
    const lc_syscall_fields call = {.number = number, .args = {a, b, c}};
    lc_target target;
    memset(&target, 0xAA, sizeof target);
    lc_wait_target(&reader, (uint64_t)getpid(), &call, &target);
    return target;
}

static int is(const lc_target *target, lc_target_kind kind, const char *text)
{
    return target->kind == kind && target->length == strlen(text) &&
           memcmp(target->text, text, target->length) == 0;
}

static uint64_t address_of(const void *object) { return (uint64_t)(uintptr_t)object; }

TEST(files_are_named_by_the_path_they_were_opened_by)
{
    char path[128];
    snprintf(path, sizeof path, "%s/journal", folder);
    const int fd = open(path, O_RDWR | O_CREAT, 0600);
    CHECK(fd >= 0);
    const int64_t calls[] = {SYS_read,       SYS_write,     SYS_pread64, SYS_fsync,
                             SYS_fdatasync,  SYS_ftruncate, SYS_flock,   SYS_fallocate,
                             SYS_getdents64, SYS_sendfile,  SYS_splice,  SYS_ioctl};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        const lc_target target = asked(calls[i], (uint64_t)fd, 0, 0);
        CHECK(is(&target, LC_TARGET_FILE, path) && target.pid == 0);
    }
    close(fd);
    CHECK(asked(SYS_fsync, (uint64_t)fd, 0, 0).kind == LC_TARGET_NONE);
    CHECK(asked(SYS_fsync, UINT64_MAX, 0, 0).kind == LC_TARGET_NONE);
    unlink(path);
}

TEST(paths_are_read_from_memory_up_to_its_last_page)
{
    lc_target target = asked(SYS_openat, (uint64_t)AT_FDCWD, address_of("/srv/shop/größe"), 0);
    CHECK(is(&target, LC_TARGET_FILE, "/srv/shop/größe"));
    target = asked(SYS_openat, (uint32_t)AT_FDCWD, address_of("below"), 0);
    CHECK(is(&target, LC_TARGET_FILE, "below"));
    const int fd = open(folder, O_RDONLY | O_DIRECTORY);
    char below[128];
    snprintf(below, sizeof below, "%s/x", folder);
    target = asked(SYS_unlinkat, (uint64_t)fd, address_of("x"), 0);
    CHECK(is(&target, LC_TARGET_FILE, below));
    target = asked(SYS_statx, (uint64_t)fd, address_of(""), 0); /* AT_EMPTY_PATH */
    CHECK(is(&target, LC_TARGET_FILE, folder));
    close(fd);
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED && munmap(page + 4096, 4096) == 0);
    memcpy(page + 4092, "/ab", 4);
    target = asked(SYS_truncate, address_of(page + 4092), 0, 0);
    CHECK(is(&target, LC_TARGET_FILE, "/ab"));
    page[4095] = 'c'; /* no end before the page's */
    CHECK(asked(SYS_truncate, address_of(page + 4092), 0, 0).kind == LC_TARGET_NONE);
    CHECK(asked(SYS_truncate, 16, 0, 0).kind == LC_TARGET_NONE);
    munmap(page, 4096);
}

TEST(long_paths_are_cut)
{
    char path[2 * LC_STRING_MAX];
    memset(path, 'p', sizeof path);
    path[sizeof path - 1] = '\0';
    const lc_target whole = asked(SYS_truncate, address_of(path), 0, 0);
    CHECK(whole.kind == LC_TARGET_FILE && whole.length == LC_STRING_MAX);
    const int fd = open(folder, O_RDONLY | O_DIRECTORY);
    const lc_target below = asked(SYS_openat, (uint64_t)fd, address_of(path), 0);
    CHECK(below.kind == LC_TARGET_FILE && below.length == LC_STRING_MAX);
    CHECK(memcmp(below.text, folder, strlen(folder)) == 0 && below.text[LC_STRING_MAX - 1] == 'p');
    close(fd);
}

TEST(pipes_are_told_from_files_without_asking_a_file_system)
{
    char path[128];
    int ends[2];
    snprintf(path, sizeof path, "%s/fifo", folder);
    CHECK(pipe(ends) == 0 && mkfifo(path, 0600) == 0);
    lc_target target = asked(SYS_read, (uint64_t)ends[0], 0, 0);
    CHECK(target.kind == LC_TARGET_PIPE && memcmp(target.text, "pipe:[", 6) == 0);
    const int fd = open(path, O_RDWR);
    target = asked(SYS_read, (uint64_t)fd, 0, 0);
    CHECK(is(&target, LC_TARGET_PIPE, path));
    close(fd);
    close(ends[0]);
    close(ends[1]);
    unlink(path);
}

static int listening(struct sockaddr_in *address, int backlog)
{
    socklen_t bytes = sizeof *address;
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CHECK(bind(fd, (struct sockaddr *)address, sizeof *address) == 0 && listen(fd, backlog) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)address, &bytes) == 0);
    return fd;
}

TEST(sockets_are_named_by_their_peer_also_while_they_connect)
{
    struct sockaddr_in address;
    char text[64];
    char bound[80];
    const int server = listening(&address, 0);
    snprintf(text, sizeof text, "127.0.0.1:%u", (unsigned)ntohs(address.sin_port));
    snprintf(bound, sizeof bound, "bound to %s", text);
    lc_target target = asked(SYS_accept4, (uint64_t)server, 0, 0);
    CHECK(is(&target, LC_TARGET_SOCKET, bound));
    enum { CLIENTS = 4 }; /* more than fit: the last ones get no answer */
    int clients[CLIENTS];
    bool while_connecting = true;
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(clients[i], (struct sockaddr *)&address, sizeof address);
        struct sockaddr_in peer;
        socklen_t bytes = sizeof peer;
        if (i == 0) { /* emulators of Linux lack it */
            while_connecting = getsockopt(clients[i], SOL_SOCKET, SO_PEERNAME, &peer, &bytes) == 0;
        }
        if (i > 0 && !while_connecting) {
            continue;
        }
        target = asked(SYS_recvfrom, (uint64_t)clients[i], 0, 0);
        CHECK(is(&target, LC_TARGET_SOCKET, text));
        struct pollfd entries[] = {{.fd = -1}, {.fd = clients[i], .events = POLLOUT}};
        target = asked(SYS_ppoll, address_of(entries), 2, 0);
        CHECK(is(&target, LC_TARGET_SOCKET, text));
    }
    const int fresh = socket(AF_INET, SOCK_STREAM, 0); /* nothing connected: the call says where to */
    target = asked(SYS_connect, (uint64_t)fresh, address_of(&address), sizeof address);
    CHECK(is(&target, LC_TARGET_SOCKET, text));
    close(fresh);
    for (int i = 0; i < CLIENTS; i++) {
        close(clients[i]);
    }
    close(server);
}

TEST(addresses_of_every_family_have_a_text)
{
    char text[LC_STRING_MAX];
    struct sockaddr_in6 six = {
        .sin6_family = AF_INET6, .sin6_port = htons(443), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    CHECK(lc_socket_address_text(&six, sizeof six, text, sizeof text) == 9 &&
          memcmp(text, "[::1]:443", 9) == 0);
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    const size_t head = offsetof(struct sockaddr_un, sun_path);
    memcpy(un.sun_path, "\0name", 5);
    CHECK(lc_socket_address_text(&un, head + 5, text, sizeof text) == 5 && memcmp(text, "@name", 5) == 0);
    memset(un.sun_path, 'p', sizeof un.sun_path); /* the kernel allows a path without an end */
    CHECK(lc_socket_address_text(&un, sizeof un, text, sizeof text) == sizeof un.sun_path);
    CHECK(lc_socket_address_text(&un, sizeof un, text, 8) == 7);
    CHECK(lc_socket_address_text(&un, head, text, sizeof text) == 0); /* no name */
    struct sockaddr odd = {.sa_family = AF_APPLETALK};
    CHECK(lc_socket_address_text(&odd, sizeof odd, text, sizeof text) == 0);
    CHECK(lc_socket_address_text(&six, 1, text, sizeof text) == 0);
    CHECK(lc_socket_address_text(&six, 4, text, sizeof text) == 0);
}

TEST(of_several_descriptors_only_what_is_common_is_told)
{
    int ends[2];
    int others[2];
    CHECK(pipe(ends) == 0 && pipe(others) == 0);
    struct pollfd entries[] = {{.fd = ends[0]}, {.fd = others[0]}};
    CHECK(asked(SYS_ppoll, address_of(entries), 2, 0).kind == LC_TARGET_NONE);
    CHECK(asked(SYS_ppoll, address_of(entries), 1, 0).kind == LC_TARGET_PIPE);
    CHECK(asked(SYS_ppoll, address_of(entries), 0, 0).kind == LC_TARGET_NONE);
    CHECK(asked(SYS_ppoll, address_of(entries), UINT64_MAX, 0).kind == LC_TARGET_NONE);
    CHECK(asked(SYS_ppoll, 8, 1, 0).kind == LC_TARGET_NONE);
    fd_set set;
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    CHECK(asked(SYS_pselect6, (uint64_t)ends[0] + 1, address_of(&set), 0).kind == LC_TARGET_PIPE);
    CHECK(asked(SYS_pselect6, UINT64_MAX, address_of(&set), 0).kind == LC_TARGET_NONE);
    CHECK(asked(SYS_pselect6, (uint64_t)ends[0] + 1, 8, 0).kind == LC_TARGET_NONE);
    for (int i = 0; i < 2; i++) {
        close(ends[i]);
        close(others[i]);
    }
}

/* The kernel sets a command's begin and its end one after the other; and while it reads the program from a
 * disk (state D), its arguments are not asked for. */
static bool waits_by_command(pid_t pid)
{
    static const char command_line[] = "sleep\0"
                                       "1000";
    static const char state[] = "(sleep) S";
    char path[64], text[64];
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    int fd = open(path, O_RDONLY);
    CHECK(fd >= 0);
    ssize_t bytes = read(fd, text, sizeof text);
    close(fd);
    if (bytes != sizeof command_line || memcmp(text, command_line, sizeof command_line) != 0) {
        return false;
    }
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY);
    CHECK(fd >= 0);
    bytes = read(fd, text, sizeof text);
    close(fd);
    return bytes > 0 && memmem(text, (size_t)bytes, state, sizeof state - 1) != NULL;
}

static void wait_for_command(pid_t pid)
{
    const uint64_t until = lc_now_ns() + HANG_NS;
    while (!waits_by_command(pid)) {
        CHECK(lc_now_ns() < until);
        sched_yield();
    }
}

static pid_t child_that_waits(int output)
{
    int ready[2];
    char one;
    CHECK(pipe(ready) == 0);
    const pid_t pid = fork();
    if (pid == 0) {
        if (output >= 0) {
            dup2(output, 1);
        }
        prctl(PR_SET_PDEATHSIG, SIGKILL);     /* also where a check fails */
        fcntl(ready[1], F_SETFD, FD_CLOEXEC); /* closed by exec, before the kernel has the new command */
        close(ready[0]);
        execlp("sleep", "sleep", "1000", (char *)NULL);
        _exit(1);
    }
    close(ready[1]);
    CHECK(read(ready[0], &one, 1) == 0);
    close(ready[0]);
    wait_for_command(pid);
    return pid;
}

/* As the helpers are that start a keeper: no plain wait sees it. */
static pid_t child_without_a_signal(void)
{
    const pid_t pid = (pid_t)syscall(SYS_clone, 0, 0, 0, 0, 0);
    if (pid == 0) {
        syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        for (;;) {
            pause();
        }
    }
    CHECK(pid > 0);
    return pid;
}

TEST(children_are_named_by_their_command)
{
    int ends[2];
    CHECK(pipe(ends) == 0);
    const pid_t pid = child_that_waits(ends[1]);
    lc_target target = asked(SYS_wait4, (uint64_t)pid, 0, 0);
    CHECK(is(&target, LC_TARGET_CHILD, "sleep 1000") && target.pid == (uint32_t)pid);
    target = asked(SYS_waitid, P_PID, (uint64_t)pid, 0);
    CHECK(target.kind == LC_TARGET_CHILD && target.pid == (uint32_t)pid);
    if (access("/proc/thread-self/children", R_OK) == 0) { /* needs CONFIG_PROC_CHILDREN */
        target = asked(SYS_wait4, (uint64_t)-1, 0, 0);
        CHECK(target.kind == LC_TARGET_CHILD && target.pid == (uint32_t)pid);
        const pid_t helper = child_without_a_signal();
        target = asked(SYS_wait4, (uint64_t)-1, 0, 0);
        CHECK(target.kind == LC_TARGET_CHILD && target.pid == (uint32_t)pid);
        CHECK(kill(helper, SIGKILL) == 0 && waitpid(helper, NULL, __WCLONE) == helper);
        target = asked(SYS_read, (uint64_t)ends[0], 0, 0); /* it writes to the other end */
        CHECK(is(&target, LC_TARGET_CHILD, "sleep 1000") && target.pid == (uint32_t)pid);
        const pid_t second = child_that_waits(-1);
        CHECK(asked(SYS_wait4, (uint64_t)-1, 0, 0).kind == LC_TARGET_NONE);
        CHECK(kill(second, SIGKILL) == 0 && waitpid(second, NULL, 0) == second);
    }
    CHECK(asked(SYS_wait4, (uint64_t)-77, 0, 0).kind == LC_TARGET_NONE); /* of a group */
    CHECK(asked(SYS_wait4, 1, 0, 0).kind == LC_TARGET_NONE);             /* no child of ours */
    CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
    CHECK(asked(SYS_wait4, (uint64_t)pid, 0, 0).kind == LC_TARGET_NONE);
    close(ends[0]);
    close(ends[1]);
}

TEST(other_calls_have_no_target)
{
    const int64_t calls[] = {SYS_futex,          SYS_clock_nanosleep, SYS_getpid,
                             LC_SYSCALL_RUNNING, LC_SYSCALL_UNKNOWN,  100000};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        CHECK(lc_syscall_shape_of(calls[i]).kind == LC_SHAPE_NONE);
        CHECK(asked(calls[i], 0, 0, 0).kind == LC_TARGET_NONE);
    }
}

int main(void)
{
    CHECK(lc_memory_reader_open(&reader, getpid()) != LC_READER_NONE);
    CHECK(mkdtemp(folder) != NULL);
    run_tests();
    CHECK(rmdir(folder) == 0);
    lc_memory_reader_close(&reader);
    return 0;
}
