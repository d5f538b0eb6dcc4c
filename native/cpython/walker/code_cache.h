/* What is known of code objects, by their address; and the proof, at each use, that the object at that
 * address is still the one that it was learned from.
 *
 * Addresses are reused: a program that compiles and drops functions gets the next one where the last
 * one was, strings and all. From 3.12 on a code object has a version number that no other one has
 * had, and its words are proof enough. Before that (and once the numbers have run out) the values of its
 * strings and its line table are compared too.
 *
 * Where the deaths of code objects are counted, a proof holds until there is another one at the address. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cpython/source/cpython_source.h"
#include "cpython/walker/linetable.h"
#include "cpython/objects/objects.h"
#include "cpython/walker/snapshot.h"

#define LC_CODE_CACHE_SIZE 4096u
#define LC_POSITION_SETS 1024u
#define LC_POSITION_WAYS 4u /* positions of one stack that meet in a set must not evict each other */

typedef struct {    /* the words of a code object that never change */
    uint64_t units; /* code units of two bytes */
    uint64_t filename;
    uint64_t qualname;
    uint64_t linetable;
    uint32_t flags;
    uint32_t first_line;
    uint32_t first_traceable;
    uint32_t version; /* 0: none */
} lc_code_words;

typedef struct {
    uint64_t address; /* of the code object, 0: free */
    uint64_t used_at; /* number of the walk that last used it */
    uint64_t deaths;  /* counted at the address when `proofs` began; see code_deaths.h */
    uint32_t proofs;  /* that it is what the address holds, with no death there since */
    lc_code_words words;
    lc_value_print filename_print;
    lc_value_print qualname_print;
    lc_value_print linetable_print;
    lc_code_facts facts;
} lc_known_code;

typedef struct {
    char filename[LC_STRING_MAX];
    char qualname[LC_STRING_MAX];
} lc_code_texts;

typedef struct {
    uint64_t serial; /* of the code, 0: free */
    uint32_t unit;
    lc_position position;
} lc_position_entry;

typedef struct {
    uint64_t walk;                     /* number of the current walk */
    uint64_t serial;                   /* last given out */
    uint64_t loads;                    /* entries written so far: while it stays, what entries hold stays */
    uint64_t keys[LC_CODE_CACHE_SIZE]; /* addresses again, dense: probing touches no entry */
    lc_position_entry positions[LC_POSITION_SETS][LC_POSITION_WAYS]; /* latest first */
    uint8_t scratch[LC_BYTES_MAX];
    lc_known_code entries[LC_CODE_CACHE_SIZE];
    lc_code_texts texts[LC_CODE_CACHE_SIZE]; /* of the entries; apart from what every walk looks at */
} lc_code_cache;

/* Reads the words of the code object at `address`. False if there is no code object. */
bool lc_code_words_read(const lc_cpython_source *source, lc_snapshot *snapshot, uint64_t address,
                        lc_code_words *words, lc_read_plan *plan);

/* The entry of the code object, if what is known of it is proven by the snapshot; NULL otherwise. */
lc_known_code *lc_code_cache_prove(lc_code_cache *cache, const lc_cpython_source *source,
                                   lc_snapshot *snapshot, uint64_t address, const lc_code_words *words,
                                   lc_read_plan *plan);

/* The entry of the code object, if it was proven often enough and `deaths`, counted after the address was
 * read from where it is in use, is what it was then. No memory is read. NULL: it has to be proven. */
lc_known_code *lc_code_cache_trusted(lc_code_cache *cache, uint64_t address, uint64_t deaths);

/* A proven walk has proven the entry, with this number of deaths counted at its address before. One walk
 * of a thread that did not move (`for_sure`) is enough; two walks are needed where only readings agreed,
 * since the entry is used without another look from then on. */
void lc_code_cache_trust(lc_known_code *entry, uint64_t deaths, bool for_sure);

/* Reads the strings of a code object into a new entry, with a new serial. NULL if they are not what they must
 * be, or if every place for it is taken by the current walk. Not to be believed before it
 * has been proven by a later snapshot; if that fails, forget it. */
lc_known_code *lc_code_cache_load(lc_code_cache *cache, const lc_cpython_source *source, uint64_t address,
                                  const lc_code_words *words);
void lc_code_cache_forget(lc_code_cache *cache, lc_known_code *entry);

/* Position of a code unit. `*fresh` is set if it was read now, and so is not to be believed
 * before the code has been proven again; if that fails, forget it. */
lc_position lc_code_cache_position(lc_code_cache *cache, const lc_cpython_source *source,
                                   const lc_known_code *entry, uint32_t unit, bool *fresh);
void lc_code_cache_forget_position(lc_code_cache *cache, uint64_t serial, uint32_t unit);
