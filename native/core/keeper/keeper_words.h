/* What starts a keeper, in memory of our own: it is read without the GIL, while the program may change its environment. */
#ifndef LOOPCANARY_KEEPER_WORDS_H
#define LOOPCANARY_KEEPER_WORDS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    char **argv; /* the first word is the executable's path */
    char **envp;
    char *log;  /* path; stderr of the keeper */
    char *bell; /* path */
    size_t bytes; /* of all: one block */
} lc_keeper_words;

/* A copy, to be given back by free(3). NULL: no memory. */
lc_keeper_words *lc_keeper_words_copy(char *const argv[], char *const envp[], const char *log, const char *bell);
bool lc_keeper_words_equal(const lc_keeper_words *a, const lc_keeper_words *b);

/* Starts the keeper (spawn_apart.h), and marks that in its log, so that of many processes of a store one starts it. 0, EINPROGRESS: one was
 * started in the last seconds; or an errno. Waits for the execve, about a millisecond. */
int lc_keeper_words_start(const lc_keeper_words *words);

#endif
