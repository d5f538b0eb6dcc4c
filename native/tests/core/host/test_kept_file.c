/* Descriptors of ours among those of a program that counts, limits and closes its own. */
#include "core/host/kept_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/check.h"

static lc_kept_file file;
static char text[64];

static void allow(rlim_t descriptors)
{
    const struct rlimit limit = {descriptors, 1024};
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

/* The process that starts the tests may leave them descriptors of its own. */
static void close_inherited(void)
{
    for (int fd = STDERR_FILENO + 1; fd < 1024; fd++) {
        close(fd);
    }
}

/* The number that the program's next file gets. */
static int next_number(void)
{
    const int fd = dup(STDERR_FILENO);
    CHECK(fd >= 0 && close(fd) == 0);
    return fd;
}

TEST(the_programs_numbers_stay_its_own)
{
    const int next = next_number();
    allow(1024);
    CHECK(lc_kept_file_open(&file, "/proc/self/stat") && file.fd >= 512 && lc_kept_files_may_stay());
    CHECK(next_number() == next && lc_kept_file_read(&file, text, sizeof text) > 0);
    lc_kept_file_close(&file);
    CHECK(file.fd == 0 && next_number() == next);
}

TEST(where_few_are_allowed_the_upper_half_is_ours)
{
    allow(20);
    CHECK(lc_kept_file_open(&file, "/proc/self/stat") && file.fd >= 10 && !lc_kept_files_may_stay());
    lc_kept_file_close(&file);
    const int next = next_number();
    allow((rlim_t)next + 1u);
    /* the last is its own */
    CHECK(!lc_kept_file_open(&file, "/proc/self/stat") && errno == EMFILE && next_number() == next);
    allow(1024);
}

TEST(a_file_that_cannot_be_opened_is_none)
{
    CHECK(!lc_kept_file_open(&file, "/nowhere/at/all") && errno == ENOENT && file.fd == 0);
    CHECK(!lc_kept_file_is_ours(&file) && lc_kept_file_read(&file, text, sizeof text) == 0);
}

TEST(a_descriptor_that_the_program_has_reused_is_left_alone)
{
    CHECK(lc_kept_file_open(&file, "/proc/self/schedstat"));
    const int fd = file.fd;
    const int theirs = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    CHECK(dup2(theirs, fd) == fd);
    CHECK(!lc_kept_file_is_ours(&file) && lc_kept_file_read(&file, text, sizeof text) == 0);
    lc_kept_file_close(&file);
    CHECK(fcntl(fd, F_GETFD) >= 0);
    close(fd);
    close(theirs);
}

/* Takes all that are allowed, and says how many. */
static int take_all(int *taken, int room)
{
    int count = 0;
    while (count < room && (taken[count] = dup(STDERR_FILENO)) >= 0) {
        count++;
    }
    return count;
}

TEST(a_program_without_room_gets_none_of_ours)
{
    enum { ALLOWED = 64 };
    static int taken[ALLOWED];
    lc_kept_file other;
    allow(ALLOWED);
    CHECK(lc_kept_file_open(&file, "/proc/self/stat") && lc_kept_file_open(&other, "/proc/self/schedstat"));
    const int ours = file.fd;
    const int count = take_all(taken, ALLOWED);
    CHECK(count > 0 && count < ALLOWED && errno == EMFILE);

    lc_kept_file_close(&file);
    lc_close_left();
    CHECK(file.fd == 0 && dup(STDERR_FILENO) < 0 && errno == EMFILE);

    for (int i = 0; i < count; i++) {
        close(taken[i]);
    }
    lc_kept_file_close(&other); /* there is room: so is what was left */
    CHECK(fcntl(ours, F_GETFD) < 0 && take_all(taken, ALLOWED) == count + 2);
    for (int i = 0; i < count + 2; i++) {
        close(taken[i]);
    }
    allow(1024);
}

TEST(what_was_left_is_closed_with_the_engine_and_only_if_it_is_ours)
{
    enum { ALLOWED = 64 };
    static int taken[ALLOWED];
    lc_kept_file lost;
    allow(ALLOWED);
    CHECK(lc_kept_file_open(&file, "/proc/self/stat") && lc_kept_file_open(&lost, "/proc/self/schedstat"));
    const int ours = file.fd, reused = lost.fd;
    const int count = take_all(taken, ALLOWED);
    lc_kept_file_close(&file);
    lc_kept_file_close(&lost);
    CHECK(dup2(STDERR_FILENO, reused) == reused);

    lc_close_all_left();
    CHECK(fcntl(ours, F_GETFD) < 0 && fcntl(reused, F_GETFD) >= 0);
    for (int i = 0; i < count; i++) {
        close(taken[i]);
    }
    close(reused);
    allow(1024);
}

int main(void)
{
    close_inherited();
    return run_tests();
}
