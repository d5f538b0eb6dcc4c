/* Arguments and environment of a keeper, copied: the courier reads them without the GIL, while the program
 * may change its environment. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Both files lie in memory, as flight files do, so that no thread of the program waits for a disk to ring
 * or start a keeper. */
typedef struct {
    const char *mark; /* its time says when a keeper was last started; a keeper that ends well removes it */
    const char *bell;
    /* of the flight file, or of the link to it in the store, which a keeper makes again; "": it has none */
    const char *name;
} lc_keeper_paths;

typedef struct {
    /* the first word is the executable's path; "": none is to be started, only one that is there is rung */
    char **argv;
    char **envp;
    lc_keeper_paths paths;
    size_t bytes; /* of all: one block */
} lc_keeper_words;

/* A copy, to be given back by free(3). NULL: no memory. */
lc_keeper_words *lc_keeper_words_copy(char *const argv[], char *const envp[], const lc_keeper_paths *paths);
bool lc_keeper_words_equal(const lc_keeper_words *a, const lc_keeper_words *b);

/* Whether the last keeper ended as it should: it was asked to, or had nothing left to do. */
bool lc_keeper_words_ended_well(const lc_keeper_words *words);

/* Starts the keeper (spawn_apart.h), and marks that, so that of many processes of a store one starts it.
 * 0, EINPROGRESS: one was started in the last seconds; or an errno. Waits for the execve, about a
 * millisecond. */
int lc_keeper_words_start(const lc_keeper_words *words);
