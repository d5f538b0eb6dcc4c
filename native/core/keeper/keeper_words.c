#include "core/keeper/keeper_words.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/host/spawn_apart.h"

enum { START_S = 5 }; /* a keeper has its bell by then, also on a busy machine */

static size_t count_of(char *const texts[])
{
    size_t count = 0;
    while (texts[count] != NULL) {
        count++;
    }
    return count;
}

static size_t bytes_of(char *const texts[])
{
    size_t bytes = 0;
    for (; *texts != NULL; texts++) {
        bytes += strlen(*texts) + 1u;
    }
    return bytes;
}

static char *put(char **at, const char *text)
{
    char *const copy = *at;
    const size_t bytes = strlen(text) + 1u;
    memcpy(copy, text, bytes);
    *at += bytes;
    return copy;
}

static void put_all(char **into, char *const texts[], size_t count, char **at)
{
    for (size_t i = 0; i < count; i++) {
        into[i] = put(at, texts[i]);
    }
    into[count] = NULL;
}

lc_keeper_words *lc_keeper_words_copy(char *const argv[], char *const envp[], const lc_keeper_paths *paths)
{
    char *const places[] = {(char *)paths->log, (char *)paths->bell, (char *)paths->link, (char *)paths->file, NULL};
    const size_t words = count_of(argv), variables = count_of(envp);
    const size_t texts = sizeof(lc_keeper_words) + (words + variables + 2u) * sizeof(char *);
    const size_t bytes = texts + bytes_of(argv) + bytes_of(envp) + bytes_of(places);
    lc_keeper_words *const own = malloc(bytes);
    if (own == NULL) {
        return NULL;
    }
    char *at = (char *)own + texts;
    own->bytes = bytes;
    own->argv = (char **)(own + 1);
    own->envp = own->argv + words + 1u;
    put_all(own->argv, argv, words, &at);
    put_all(own->envp, envp, variables, &at);
    own->paths.log = put(&at, paths->log);
    own->paths.bell = put(&at, paths->bell);
    own->paths.link = put(&at, paths->link);
    own->paths.file = put(&at, paths->file);
    return own;
}

bool lc_keeper_words_equal(const lc_keeper_words *a, const lc_keeper_words *b)
{
    const size_t words = count_of(a->argv), variables = count_of(a->envp);
    if (a->bytes != b->bytes || count_of(b->argv) != words || count_of(b->envp) != variables) {
        return false;
    }
    const size_t texts = (size_t)(a->argv[0] - (const char *)a);
    return memcmp((const char *)a + texts, (const char *)b + texts, a->bytes - texts) == 0;
}

/* The store's, and the one in it that a file of this path lies in, as far as they are not there. Not those above: what they lie in is gone
 * with a project's folder, or out of reach after a chroot. The disk says later what could not be done. */
static void make_folders(const char *path)
{
    char store[PATH_MAX], folder[PATH_MAX];
    const char *const file = strrchr(path, '/');
    const size_t bytes = file == NULL ? 0u : (size_t)(file - path);
    if (bytes == 0 || bytes >= sizeof folder) {
        return;
    }
    memcpy(folder, path, bytes);
    folder[bytes] = '\0';
    memcpy(store, folder, bytes + 1u);
    char *const last = strrchr(store, '/');
    if (last != NULL && last != store) {
        *last = '\0';
        (void)mkdir(store, 0700);
        (void)mkdir(folder, 0700);
    }
}

/* Whether it is there, or a recovery has it in hand (loopcanary.store.recovery.flight_folder). */
static bool is_linked(const char *link)
{
    static const char in_hand[] = ".claimed";
    char claimed[PATH_MAX];
    struct stat facts;
    const size_t bytes = strlen(link);
    if (lstat(link, &facts) == 0 || errno != ENOENT || bytes + sizeof in_hand > sizeof claimed) {
        return true;
    }
    memcpy(claimed, link, bytes);
    memcpy(claimed + bytes, in_hand, sizeof in_hand);
    return lstat(claimed, &facts) == 0;
}

void lc_keeper_words_link(const lc_keeper_words *words)
{
    const lc_keeper_paths *const paths = &words->paths;
    struct stat facts;
    if (*paths->link != '\0' && !is_linked(paths->link) && lstat(paths->file, &facts) == 0) {
        make_folders(paths->link);
        (void)symlink(paths->file, paths->link);
    }
}

/* Whether it was written to just now, by a keeper or by who started one. */
static bool is_fresh(int log)
{
    struct stat facts;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (fstat(log, &facts) != 0) {
        return false;
    }
    const time_t apart = now.tv_sec - facts.st_mtim.tv_sec;
    return apart > -START_S && apart < START_S;
}

/* Of all processes of the store one gets 0 within START_S, the others EINPROGRESS. Or an errno: it cannot be written. */
static int mark(const char *log)
{
    int fd = open(log, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && errno == ENOENT) {
        make_folders(log);
        fd = open(log, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd >= 0) {
            close(fd);
            return 0;
        }
        return errno == EEXIST ? EINPROGRESS : errno;
    }
    if (fd < 0) {
        return errno;
    }
    int error = flock(fd, LOCK_EX | LOCK_NB) != 0 || is_fresh(fd) ? EINPROGRESS : 0;
    if (error == 0 && futimens(fd, NULL) != 0) {
        error = errno;
    }
    (void)flock(fd, LOCK_UN); /* a child that was forked meanwhile has the descriptor, too */
    close(fd);
    return error;
}

bool lc_keeper_words_ended_well(const lc_keeper_words *words)
{
    struct stat facts;
    return lstat(words->paths.log, &facts) == 0 && facts.st_mtim.tv_sec == 0;
}

int lc_keeper_words_start(const lc_keeper_words *words)
{
    const char *const log = words->paths.log;
    if (*words->argv[0] == '\0') {
        return EPERM;
    }
    const int error = mark(log);
    return error ? error : lc_spawn_apart(words->argv[0], words->argv, words->envp, log);
}
