/* Walks over a made-up interpreter, for tests that are run in the layout of every version. */
#pragma once

#include "fuzz/made_up_memory.h"
#include "tests/check.h"

static const uint64_t versions[] = {0x030B07F0, 0x030C01F0, 0x030D00F0, 0x030E0AF0, 0x030F02F0};

static made_up_memory memory;
static lc_cpython_source source;
static lc_stack stack;

static inline void open_source(uint64_t version, uint32_t depth)
{
    const lc_interpreter_addresses at = made_up_addresses();
    made_up_interpreter(&memory, version, depth);
    CHECK(lc_cpython_source_init(&source, &memory.reader, memory.layout, &at));
}

static inline lc_walk_result walk(void)
{
    return source.source.walk(&source.source, made_up_at(MADE_UP_THREAD), &stack);
}

static inline int is_named(const lc_frame *frame, const char *qualname)
{
    return frame->code->qualname.length == strlen(qualname) &&
           memcmp(frame->code->qualname.bytes, qualname, strlen(qualname)) == 0;
}

static uint64_t version; /* PY_VERSION_HEX of the layout; all tests run for each */

/* Where the deaths of code objects are counted. */

static lc_code_deaths deaths;
static lc_code_destructor slot;

static inline void counting(struct _object *code) { (void)code; }

static inline uint64_t code_at(uint32_t number)
{
    return made_up_at(MADE_UP_CODES + (uint64_t)number * MADE_UP_CODE_STRIDE);
}

static inline void open_source_that_counts(uint64_t version, uint32_t depth)
{
    open_source(version, depth);
    memset(&deaths, 0, sizeof deaths);
    deaths.slot = &slot;
    deaths.counting = counting;
    slot = counting;
    source.deaths = &deaths;
    source.at.interp = made_up_at(MADE_UP_INTERP);
}

static inline void run_tests_of_all_versions(void)
{
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        version = versions[i];
        run_tests();
    }
}
