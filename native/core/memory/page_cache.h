/* A reader of memory that reads whole pages and keeps them, for readings of thousands of objects that lie close
 * together. What it answers may be as old as the last lc_page_cache_forget. One thread. */
#pragma once

#include "core/memory/memory_reader.h"

#define LC_CACHED_PAGES 128u
#define LC_CACHED_PAGE_BYTES 4096u

typedef struct {
    lc_memory_reader reader; /* first: its `read` is given its address */
    const lc_memory_reader *base;
    uint64_t kept[LC_CACHED_PAGES]; /* number of the page in this place, plus 1; 0: none */
    /* aligned: their memory can be given back */
    _Alignas(LC_CACHED_PAGE_BYTES) uint8_t pages[LC_CACHED_PAGES][LC_CACHED_PAGE_BYTES];
} lc_page_cache;

/* Reads through `base`, which outlives it. */
void lc_page_cache_open(lc_page_cache *cache, const lc_memory_reader *base);
void lc_page_cache_forget(lc_page_cache *cache);
