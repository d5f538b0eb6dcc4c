/* Where the store was removed beside the program: its folders and the link are made again, and nothing above them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/keeper/keeper_words.h"
#include "tests/check.h"

enum { PATH_BYTES = 128 };

static char place[] = "/tmp/loopcanary-words-XXXXXX"; /* for mkdtemp(3) */
static char log_path[PATH_BYTES], link_path[PATH_BYTES], file[PATH_BYTES], claimed[PATH_BYTES + sizeof ".claimed"];

static lc_keeper_words *words_of(const char *store, char *const executable)
{
    char *const argv[] = {executable, NULL}, *const envp[] = {NULL};
    snprintf(log_path, sizeof log_path, "%s/%s/keeper/log", place, store);
    snprintf(link_path, sizeof link_path, "%s/%s/flight/its.flight", place, store);
    snprintf(claimed, sizeof claimed, "%s.claimed", link_path);
    snprintf(file, sizeof file, "%s/memory", place);
    const lc_keeper_paths paths = {log_path, log_path, link_path, file};
    lc_keeper_words *const words = lc_keeper_words_copy(argv, envp, &paths);
    CHECK(words != NULL && strcmp(words->paths.link, link_path) == 0 && strcmp(words->paths.file, file) == 0);
    return words;
}

static bool is_linked(void)
{
    char target[PATH_BYTES];
    const ssize_t bytes = readlink(link_path, target, sizeof target);
    return bytes == (ssize_t)strlen(file) && memcmp(target, file, (size_t)bytes) == 0;
}

static void remove_folder(const char *name)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", place, name);
    CHECK(rmdir(path) == 0);
}

TEST(the_link_and_its_folders_are_made_again)
{
    CHECK(mkdtemp(place) != NULL);
    char nothing[] = "/bin/true";
    lc_keeper_words *const words = words_of("store", nothing);
    lc_keeper_words_link(words);
    CHECK(access(link_path, F_OK) != 0 && !is_linked()); /* the file is gone: a link would lead to nothing */
    close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    lc_keeper_words_link(words);
    lc_keeper_words_link(words); /* it is there */
    CHECK(is_linked());
    CHECK(rename(link_path, claimed) == 0); /* a recovery has it in hand */
    lc_keeper_words_link(words);
    CHECK(access(link_path, F_OK) != 0);
    CHECK(lc_keeper_words_start(words) == 0 && access(log_path, F_OK) == 0);
    unlink(claimed);
    unlink(log_path);
    remove_folder("store/keeper");
    remove_folder("store/flight");
    remove_folder("store");
    free(words);
}

TEST(what_the_store_lay_in_is_not)
{
    char nothing[] = "/bin/true", none[] = "";
    lc_keeper_words *words = words_of("project/store", nothing);
    lc_keeper_words_link(words);
    CHECK(lc_keeper_words_start(words) == ENOENT);
    free(words);
    words = words_of("store", none);
    CHECK(lc_keeper_words_start(words) == EPERM && access(log_path, F_OK) != 0);
    free(words);
    unlink(file);
    remove_folder("");
}

int main(void) { return run_tests(); }
