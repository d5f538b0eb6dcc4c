/* What starts a keeper, in memory of our own: it is read without the GIL, while the program may change its environment. */
#ifndef LOOPCANARY_KEEPER_WORDS_H
#define LOOPCANARY_KEEPER_WORDS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    const char *log;  /* stderr of the keeper */
    const char *bell;
    const char *link; /* to the program's flight file, in the store: by it a keeper finds the file. "": the file itself is there */
    const char *file;
} lc_keeper_paths;

typedef struct {
    char **argv; /* the first word is the executable's path; "": none is to be started, only one that is there is rung */
    char **envp;
    lc_keeper_paths paths;
    size_t bytes; /* of all: one block */
} lc_keeper_words;

/* A copy, to be given back by free(3). NULL: no memory. */
lc_keeper_words *lc_keeper_words_copy(char *const argv[], char *const envp[], const lc_keeper_paths *paths);
bool lc_keeper_words_equal(const lc_keeper_words *a, const lc_keeper_words *b);

/* Makes the link to the flight file again, with its folders, where the store was removed beside the program. */
void lc_keeper_words_link(const lc_keeper_words *words);

/* Whether the last keeper was asked to end, or had nothing to do: it sets its log's time to 0 (loopcanary.keeper.seat). */
bool lc_keeper_words_ended_well(const lc_keeper_words *words);

/* Starts the keeper (spawn_apart.h), and marks that in its log, so that of many processes of a store one starts it. 0, EINPROGRESS: one was
 * started in the last seconds; or an errno. Waits for the execve, about a millisecond. */
int lc_keeper_words_start(const lc_keeper_words *words);

#endif
