/* What starts a keeper is a copy; of many processes one starts it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/keeper/courier.h"
#include "tests/check.h"
#include "tests/core/clock/still_clock.h"

static char place[] = "/tmp/loopcanary-words-XXXXXX"; /* for mkdtemp(3) */
static char mark[128];

static lc_keeper_words *words_of(char *const executable)
{
    char *const argv[] = {executable, NULL}, *const envp[] = {NULL};
    const lc_keeper_paths paths = {mark, "bell", "its.flight"};
    lc_keeper_words *const words = lc_keeper_words_copy(argv, envp, &paths);
    CHECK(words != NULL && strcmp(words->paths.mark, mark) == 0 &&
          strcmp(words->paths.name, "its.flight") == 0);
    return words;
}

/* The mark was set since then; and it is as if that had just been, however late this is run. */
static void mark_was_just_set(time_t since)
{
    struct stat facts;
    CHECK(stat(mark, &facts) == 0 && facts.st_mtim.tv_sec + 1 >= since); /* files have a coarser clock */
    still_wall = facts.st_mtim.tv_sec;
}

TEST(of_many_processes_one_starts_it)
{
    char program[] = "/bin/true";
    const struct timespec long_ago[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    const time_t before = time(NULL);
    lc_keeper_words *const words = words_of(program);
    CHECK(lc_keeper_words_ended_well(words)); /* none was started */
    CHECK(lc_keeper_words_start(words) == 0 && !lc_keeper_words_ended_well(words));
    mark_was_just_set(before);
    CHECK(lc_keeper_words_start(words) == EINPROGRESS);
    CHECK(utimensat(AT_FDCWD, mark, long_ago, 0) == 0 && lc_keeper_words_start(words) == 0);
    mark_was_just_set(before);
    CHECK(lc_keeper_words_start(words) == EINPROGRESS);
    unlink(mark);
    CHECK(lc_keeper_words_ended_well(words) && lc_keeper_words_start(words) == 0);
    unlink(mark);
    free(words);
}

TEST(a_mark_is_no_link)
{
    char program[] = "/bin/true", target[160];
    snprintf(target, sizeof target, "%s.elsewhere", mark);
    lc_keeper_words *const words = words_of(program);
    CHECK(symlink(target, mark) == 0);
    CHECK(lc_keeper_words_start(words) == ELOOP && access(target, F_OK) != 0);
    unlink(mark);
    free(words);
}

TEST(a_mark_of_another_user_means_nothing)
{
    char program[] = "/bin/true";
    if (geteuid() != 0) {
        return; /* only root can make one */
    }
    lc_keeper_words *const words = words_of(program);
    CHECK(chmod(place, 01777) == 0 && lc_keeper_words_start(words) == 0 && chown(mark, 1, 1) == 0 &&
          chmod(mark, 0) == 0);
    CHECK(seteuid(2) == 0 && lc_keeper_words_start(words) == 0 && seteuid(0) == 0);
    unlink(mark);
    free(words);
}

TEST(none_is_started_without_words)
{
    char none[] = "";
    lc_keeper_words *const words = words_of(none);
    CHECK(lc_keeper_words_start(words) == EPERM && access(mark, F_OK) != 0);
    free(words);
}

int main(void)
{
    stop_clock(); /* however late what is started is run, it is waited for */
    CHECK(mkdtemp(place) != NULL);
    snprintf(mark, sizeof mark, "%s/mark", place);
    run_tests();
    rmdir(place);
    return 0;
}
