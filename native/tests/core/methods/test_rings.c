/* How much of a folder, and of the address space, rings of calls take. */
#include "core/methods/calls.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/flight/set_aside.h"
#include "core/host/process_facts.h"
#include "tests/check.h"

#define KB UINT64_C(1024)
#define MB (1024 * KB)
#define WHOLE ((uint64_t)1 << 20) /* words: 8 MB */

static char folder[PATH_MAX];
static uint64_t size;         /* of the folder, as fstatvfs has it; 0: without a limit */
static uint64_t crowded_room; /* free in it, where it cannot be counted */
static const char *comes;     /* the name of a ring of another process, made while ours is */

static const char *path_of(const char *name)
{
    static char path[PATH_MAX + 512];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static uint64_t bytes_of(const char *name)
{
    struct stat facts;
    return stat(path_of(name), &facts) == 0 ? (uint64_t)facts.st_blocks * 512u : 0;
}

static uint64_t taken(void)
{
    DIR *all = opendir(folder);
    uint64_t bytes = 0;
    for (struct dirent *one; (one = readdir(all)) != NULL;) {
        bytes += one->d_name[0] == '.' ? 0 : bytes_of(one->d_name);
    }
    closedir(all);
    return bytes;
}

/* In the C library's place: a folder of this size, with the files that are there. */
int fstatvfs(int fd, struct statvfs *facts)
{
    (void)fd;
    *facts = (struct statvfs){
        .f_frsize = 4096,
        .f_blocks = size / 4096u,
        .f_bavail = (crowded_room != 0 ? crowded_room : size - (size != 0 ? taken() : 0)) / 4096u};
    return 0;
}

static void fill(const char *name, uint64_t bytes)
{
    const int fd = open(path_of(name), O_RDWR | O_CREAT, 0600);
    CHECK(fd >= 0 && syscall(SYS_fallocate, fd, 0, 0, bytes) == 0 && close(fd) == 0);
}

int ftruncate(int fd, off_t bytes)
{
    const char *name = comes;
    comes = NULL;
    if (name != NULL) {
        fill(name, 8 * MB);
    }
    return (int)syscall(SYS_ftruncate, fd, bytes);
}

int posix_fallocate(int fd, off_t offset, off_t bytes)
{
    return syscall(SYS_fallocate, fd, 0, offset, bytes) == 0 ? 0 : errno;
}

static void empty(void)
{
    DIR *all = opendir(folder);
    for (struct dirent *one; (one = readdir(all)) != NULL;) {
        (void)unlink(path_of(one->d_name));
    }
    closedir(all);
}

/* The error; the ring, if there is one, is closed, and its file stays. */
static int make(const char *name, uint64_t words)
{
    lc_calls calls;
    char path[PATH_MAX + 512];
    strcpy(path, path_of(name));
    const int error = lc_calls_create(&calls, path, words, UINT64_C(1) << 32);
    lc_calls_close(&calls);
    return error;
}

static struct statvfs folder_of(uint64_t total, uint64_t available)
{
    return (struct statvfs){.f_frsize = 4096, .f_blocks = total / 4096u, .f_bavail = available / 4096u};
}

TEST(half_of_what_is_free_stays_free)
{
    const struct statvfs docker = folder_of(64 * MB, 60 * MB), full = folder_of(64 * MB, 0),
                         any = folder_of(0, 0);
    const struct statvfs huge = {.f_frsize = 4096, .f_blocks = UINT64_MAX, .f_bavail = UINT64_MAX};
    CHECK(lc_room(&docker, 0) == 30 * MB && lc_room(&docker, 4 * MB) == 32 * MB);
    CHECK(lc_room(&full, 0) == 0 && lc_room(&full, 8 * MB) == 4 * MB);
    CHECK(lc_room(&any, 0) == UINT64_MAX && lc_room(&huge, 0) == UINT64_MAX);
}

TEST(rings_take_a_quarter_of_a_folder)
{
    const struct statvfs docker = folder_of(64 * MB, 60 * MB), crowded = folder_of(64 * MB, 10 * MB),
                         any = folder_of(0, 0);
    CHECK(lc_calls_room(&docker, 0, 0) == 16 * MB);
    CHECK(lc_calls_room(&docker, 10 * MB, 0) == 6 * MB);
    CHECK(lc_calls_room(&docker, 2 * MB, 8 * MB) == 14 * MB);
    CHECK(lc_calls_room(&docker, 16 * MB, 0) == 0 && lc_calls_room(&docker, UINT64_MAX, 0) == 0);
    CHECK(lc_calls_room(&crowded, 0, 0) == 5 * MB);
    CHECK(lc_calls_room(&any, 100 * MB, 0) == UINT64_MAX);
    const struct statvfs large = folder_of(24 * KB * MB, 20 * KB * MB);
    CHECK(lc_calls_room(&large, 128 * 9 * MB, 0) > 4 * KB * MB);
}

TEST(rings_get_smaller_until_there_is_none)
{
    size = 64 * MB;
    CHECK(make("1.flight.calls-0", WHOLE) == 0 && bytes_of("1.flight.calls-0") > 8 * MB);
    fill("other", 8 * MB); /* is no ring */
    CHECK(make("2.flight.calls-0", WHOLE) == 0 && bytes_of("2.flight.calls-0") > 4 * MB &&
          bytes_of("2.flight.calls-0") < 5 * MB);
    for (int i = 1; i < 6; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "2.flight.calls-%d", i);
        (void)make(name, WHOLE);
    }
    CHECK(taken() <= 24 * MB && taken() > 23 * MB);
    CHECK(make("2.flight.calls-15", WHOLE) == ENOSPC && access(path_of("2.flight.calls-15"), F_OK) != 0);
    empty();
    fill("other", 60 * MB);
    CHECK(make("1.flight.calls-0", WHOLE) == 0 && bytes_of("1.flight.calls-0") < 2 * MB);
    empty();
}

TEST(a_folder_without_a_limit_has_whole_rings)
{
    size = 0;
    fill("1.flight.calls-1", 64 * MB);
    CHECK(make("1.flight.calls-0", WHOLE) == 0 && bytes_of("1.flight.calls-0") > 8 * MB);
    empty();
}

TEST(of_two_that_come_at_once_the_later_gives_way)
{
    size = 64 * MB;
    comes = "2.flight.calls-0";
    CHECK(make("1.flight.calls-0", WHOLE) == 0 && bytes_of("1.flight.calls-0") < 5 * MB);
    empty();
    size = 32 * MB; /* the other one takes all that rings may have */
    comes = "2.flight.calls-0";
    CHECK(make("1.flight.calls-0", WHOLE / 2) == ENOSPC);
    empty();
}

TEST(a_ring_that_is_still_being_made_counts)
{
    size = 64 * MB;
    const int fd = open(path_of("2.flight.calls-0"), O_RDWR | O_CREAT, 0600);
    CHECK(fd >= 0 && syscall(SYS_ftruncate, fd, 8 * MB) == 0 && close(fd) == 0 &&
          bytes_of("2.flight.calls-0") == 0);
    CHECK(make("1.flight.calls-0", WHOLE) == 0 && bytes_of("1.flight.calls-0") < 5 * MB);
    empty();
}

static unsigned looks; /* at files */

int fstatat(int folder_fd, const char *name, struct stat *facts, int flags)
{
    looks++;
    return (int)syscall(
#if defined(SYS_newfstatat)
        SYS_newfstatat,
#else
        SYS_fstatat,
#endif
        folder_fd, name, facts, flags);
}

TEST(names_of_other_users_are_not_looked_at)
{
    size = 64 * MB;
    fill("loopcanary-1-a.flight.calls-0", 12 * MB);
    fill("loopcanary-12345-a.flight.calls-0", 12 * MB);
    fill("x.flight.calls-0", 12 * MB);
    looks = 0;
    CHECK(make("loopcanary-1234-a.flight.calls-0", WHOLE) == 0 && looks == 0 &&
          bytes_of("loopcanary-1234-a.flight.calls-0") > 8 * MB);
    fill("loopcanary-1234-b.flight.calls-0", 4 * MB);
    CHECK(make("loopcanary-1234-b.flight.calls-1", WHOLE) == 0 && looks == 2);
    CHECK(bytes_of("loopcanary-1234-b.flight.calls-1") < 5 * MB);
    empty();
}

static const char *crowd; /* the folder has no end of files of this name */
static unsigned names;

struct dirent *readdir(DIR *all)
{
    static struct dirent one;
    struct dirent *(*next)(DIR *);
    *(void **)&next = dlsym(RTLD_NEXT, "readdir");
    if (crowd == NULL) {
        return next(all);
    }
    names++;
    strcpy(one.d_name, crowd);
    return &one;
}

/* The error, beside a crowd. */
static int make_beside(const char *of_crowd)
{
    looks = names = 0;
    crowd = of_crowd;
    const int error = make("loopcanary-1234-a.flight.calls-0", WHOLE);
    crowd = NULL;
    empty();
    return error;
}

TEST(a_folder_with_too_many_names_is_not_read_to_its_end)
{
    size = 0; /* a folder without a limit has room for any */
    CHECK(make_beside("x.flight.calls-0") == 0 && looks == 0 && names < 50000);
    CHECK(make_beside("loopcanary-1234-b.flight.calls-0") == 0 && looks < 5000 && names < 5000);
    size = 64 * MB;
    crowded_room = 48 * MB;
    CHECK(make_beside("x.flight.calls-0") == ENOSPC);
    CHECK(make_beside("loopcanary-1234-b.flight.calls-0") == ENOSPC);
    crowded_room = 0;
}

static void limit_addresses(rlim_t bytes)
{
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_AS, &limit) == 0);
    limit.rlim_cur = bytes;
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
}

static void spare_addresses(uint64_t bytes)
{
    limit_addresses(RLIM_INFINITY - 1);
    limit_addresses(RLIM_INFINITY - 1 - lc_spare_addresses() + bytes);
}

TEST(addresses_are_counted_where_they_are_limited)
{
    CHECK(lc_spare_addresses() == UINT64_MAX);
    limit_addresses(64 * MB);
    CHECK(lc_spare_addresses() == 0);
    spare_addresses(3 * MB);
    CHECK(lc_spare_addresses() == 3 * MB);
}

TEST(the_program_keeps_its_last_addresses)
{
    size = 0;
    spare_addresses(16 * MB);
    CHECK(make("1.flight.calls-0", WHOLE) == 0 && bytes_of("1.flight.calls-0") > 8 * MB);
    spare_addresses(6 * MB);
    CHECK(make("1.flight.calls-1", WHOLE) == 0 && bytes_of("1.flight.calls-1") < 5 * MB);
    spare_addresses(100 * KB);
    CHECK(make("1.flight.calls-2", WHOLE) == ENOMEM);
    limit_addresses(RLIM_INFINITY);
    empty();
}

int main(void)
{
    (void)snprintf(folder, sizeof folder, "%s/loopcanary-rings-XXXXXX",
                   getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    CHECK(mkdtemp(folder) != NULL);
    const int result = run_tests();
    CHECK(rmdir(folder) == 0);
    return result;
}
