/* Pages that are kept: what is read across their edges, what cannot be read, and what is forgotten. */
#include "core/memory/page_cache.h"

#include <string.h>

#include "tests/check.h"

enum { PAGES = 4 };

static uint8_t memory[PAGES * LC_CACHED_PAGE_BYTES];
static unsigned readings;

/* The memory from address 0 on, but for its last page. */
static size_t read_memory(const lc_memory_reader *self, const lc_read_request *requests, size_t count)
{
    (void)self;
    readings++;
    for (size_t i = 0; i < count; i++) {
        if (requests[i].address > sizeof memory - LC_CACHED_PAGE_BYTES - requests[i].bytes) {
            return i;
        }
        memcpy(requests[i].into, memory + requests[i].address, requests[i].bytes);
    }
    return count;
}

static lc_page_cache cache;
static const lc_memory_reader base = {.read = read_memory};

static bool reads(uint64_t address, size_t bytes)
{
    uint8_t copy[2 * LC_CACHED_PAGE_BYTES];
    return lc_read(&cache.reader, address, copy, bytes) && memcmp(copy, memory + address, bytes) == 0;
}

static void begin(void)
{
    for (size_t i = 0; i < sizeof memory; i++) {
        memory[i] = (uint8_t)(i * 7u + i / 251u);
    }
    lc_page_cache_open(&cache, &base);
    readings = 0;
}

TEST(a_page_is_read_once_until_it_is_forgotten)
{
    begin();
    CHECK(reads(8, 16) && reads(4000, 96) && readings == 1);
    memory[8]++;
    CHECK(!reads(8, 16) && readings == 1);
    lc_page_cache_forget(&cache);
    CHECK(reads(8, 16) && readings == 2);
}

TEST(what_lies_across_edges_is_read_page_by_page)
{
    begin();
    CHECK(reads(4090, 12) && readings == 2);
    CHECK(reads(100, 2 * LC_CACHED_PAGE_BYTES - 200) && readings == 2);
}

TEST(what_cannot_be_read_is_not_kept)
{
    begin();
    uint64_t word;
    const uint64_t last = sizeof memory - LC_CACHED_PAGE_BYTES;
    CHECK(!lc_read(&cache.reader, last, &word, sizeof word) && readings == 1);
    CHECK(!lc_read(&cache.reader, last - 4, &word, sizeof word) && readings == 3);
    CHECK(!lc_read(&cache.reader, UINT64_MAX - 3, &word, sizeof word));
    const lc_read_request requests[] = {{0, &word, 8}, {last, &word, 8}, {8, &word, 8}};
    CHECK(cache.reader.read(&cache.reader, requests, 3) == 1);
}

int main(void) { return run_tests(); }
