#include "core/memory/page_cache.h"

#include <string.h>

/* The page's bytes; NULL: it cannot be read. */
static const uint8_t *page_at(lc_page_cache *cache, uint64_t number)
{
    const uint64_t place = (number * UINT64_C(0x9E3779B97F4A7C15) >> 32) % LC_CACHED_PAGES;
    uint8_t *page = cache->pages[place];
    if (cache->kept[place] != number + 1u) {
        cache->kept[place] = 0;
        if (!lc_read(cache->base, number * LC_CACHED_PAGE_BYTES, page, LC_CACHED_PAGE_BYTES)) {
            return NULL;
        }
        cache->kept[place] = number + 1u;
    }
    return page;
}

static bool copy(lc_page_cache *cache, const lc_read_request *request)
{
    size_t done = 0;
    while (done < request->bytes) {
        const uint64_t address = request->address + done;
        const size_t from = address % LC_CACHED_PAGE_BYTES, rest = request->bytes - done;
        const size_t part = LC_CACHED_PAGE_BYTES - from < rest ? LC_CACHED_PAGE_BYTES - from : rest;
        const uint8_t *page = address < done ? NULL : page_at(cache, address / LC_CACHED_PAGE_BYTES);
        if (page == NULL) {
            return false;
        }
        memcpy((char *)request->into + done, page + from, part);
        done += part;
    }
    return true;
}

static size_t read_pages(const lc_memory_reader *self, const lc_read_request *requests, size_t count)
{
    size_t done = 0;
    lc_page_cache *cache = (lc_page_cache *)(uintptr_t)self; /* its first member; it is never const */
    while (done < count && copy(cache, &requests[done])) {
        done++;
    }
    return done;
}

void lc_page_cache_open(lc_page_cache *cache, const lc_memory_reader *base)
{
    cache->reader = (lc_memory_reader){.read = read_pages, .pid = base->pid};
    cache->base = base;
    lc_page_cache_forget(cache);
}

void lc_page_cache_forget(lc_page_cache *cache) { memset(cache->kept, 0, sizeof cache->kept); }
