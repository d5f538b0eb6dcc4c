#include "core/keeper/courier.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

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
    char *const places[] = {(char *)paths->mark, (char *)paths->bell, (char *)paths->name, NULL};
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
    own->paths.mark = put(&at, paths->mark);
    own->paths.bell = put(&at, paths->bell);
    own->paths.name = put(&at, paths->name);
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

static bool is_fresh(int mark)
{
    struct stat facts;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (fstat(mark, &facts) != 0) {
        return false;
    }
    const time_t apart = now.tv_sec - facts.st_mtim.tv_sec;
    return apart > -START_S && apart < START_S;
}

/* Marks that a keeper is started. Within START_S one process of the store gets 0, the others EINPROGRESS.
 * Another errno: the mark cannot be written. */
static int set_mark(const char *mark)
{
    int fd = open(mark, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && errno == ENOENT) {
        fd = open(mark, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
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
    return access(words->paths.mark, F_OK) != 0 && errno == ENOENT;
}

/* Anybody can know the name, and make the file before us. */
static bool is_of_another_user(const char *mark)
{
    struct stat facts;
    return lstat(mark, &facts) == 0 && facts.st_uid != geteuid();
}

int lc_keeper_words_start(const lc_keeper_words *words)
{
    if (*words->argv[0] == '\0') {
        return EPERM;
    }
    const int error = set_mark(words->paths.mark);
    return error && !is_of_another_user(words->paths.mark)
               ? error
               : lc_spawn_apart(words->argv[0], words->argv, words->envp);
}
