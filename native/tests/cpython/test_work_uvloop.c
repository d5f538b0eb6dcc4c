/* Which handle of uvloop's runs: what the words say that are one, and all that only looks like it. */
#include "work_uvloop.h"

#include <string.h>

#include "../../fuzz/made_up_memory.h"
#include "../core/check.h"

enum {
    NOTE = 0x100,
    HANDLE = 0x200,
    OTHER = 0x300,
    LAST_WORDS = MADE_UP_BYTES - 0x40, /* fewer than a handle has */
    HANDLE_BYTES = 14 * 8,
};

enum { REFERENCES, TYPE, VTABLE, LOOP, CONTEXT }; /* words of a Handle */

static const uint64_t handle_type = 0x11111110, timer_type = 0x22222220;
static const uint64_t context = 0x33333330, other_context = 0x44444440;
static const uint64_t function = 0x55555550, method_name = 0x66666660, none = 0x77777770;

static made_up_memory memory;
static lc_cpython_source source;

static void put_word(uint64_t at, uint32_t index, uint64_t value) { made_up_put(&memory, at + 8u * index, value, 8); }

static void put_handle(uint64_t at, uint64_t its_context, uint32_t kind)
{
    put_word(at, REFERENCES, 2);
    put_word(at, TYPE, handle_type);
    put_word(at, VTABLE, 0x1234);
    put_word(at, LOOP, 0x88888880);
    put_word(at, CONTEXT, its_context);
    put_word(at, CONTEXT + 1u, 0);
    put_word(at, CONTEXT + LC_UVLOOP_NAME, kind == LC_UVLOOP_PLAIN ? none : method_name);
    put_word(at, CONTEXT + LC_UVLOOP_KIND, UINT64_C(0xFFFFFFFF00000000) | kind); /* the upper half is nobody's */
    put_word(at, CONTEXT + 4u, 0x99999990);
    put_word(at, CONTEXT + LC_UVLOOP_FIRST, kind == LC_UVLOOP_PLAIN ? function : 0x88888880);
}

static void put_note(uint64_t handle, uint64_t bytes)
{
    put_word(NOTE, 0, handle);
    put_word(NOTE, 1, context);
    put_word(NOTE, 2, handle_type);
    put_word(NOTE, 3, bytes);
}

/* A handle that runs, noted. */
static void set_up(void)
{
    memset(&memory, 0, sizeof memory);
    memory.reader = (lc_memory_reader){.read = made_up_read};
    source = (lc_cpython_source){.reader = &memory.reader};
    put_handle(HANDLE, context, LC_UVLOOP_PLAIN);
    put_note(made_up_at(HANDLE), HANDLE_BYTES);
}

static uint64_t named_at(bool has_ended)
{
    return lc_uvloop_work_object(&source, made_up_at(NOTE) | LC_WORK_UVLOOP, has_ended);
}

static uint64_t named(void) { return named_at(false); }

static void test_a_note_is_told_from_other_words(void)
{
    const lc_uvloop_note note = {0};
    CHECK(lc_is_uvloop_work(lc_uvloop_word(&note)));
    CHECK(!lc_is_uvloop_work(0) && !lc_is_uvloop_work(made_up_at(HANDLE)));
    CHECK(!lc_is_uvloop_work(made_up_at(HANDLE) | 1u) && !lc_is_uvloop_work(made_up_at(HANDLE) | 2u));
}

static void test_a_handle_that_runs_tells_its_callable(void)
{
    set_up();
    CHECK(named() == function);
}

static void test_a_handle_of_uvloop_s_own_tells_its_name(void)
{
    for (uint32_t kind = LC_UVLOOP_PLAIN + 1u; kind <= LC_UVLOOP_KINDS; kind++) {
        set_up();
        put_handle(HANDLE, context, kind);
        CHECK(named() == method_name);
    }
}

static void test_a_handle_that_is_over_tells_nothing(void)
{
    set_up();
    put_word(HANDLE, REFERENCES, 0); /* it waits for its next use; what it held is gone or is not */
    CHECK(named() == 0);
    put_word(HANDLE, CONTEXT, 0);
    CHECK(named() == 0);
}

static void test_a_handle_that_waits_tells_nothing(void)
{
    set_up();
    put_word(HANDLE, REFERENCES, 1); /* of the queue alone */
    CHECK(named() == 0);
    put_word(HANDLE, REFERENCES, UINT64_C(1) << 32 | 1u); /* the upper half is none of the count */
    CHECK(named() == 0);
}

static void test_a_handle_that_leaves_its_context_tells_its_callable_to_its_own_thread(void)
{
    set_up();
    put_word(HANDLE, REFERENCES, 1); /* Handle._run has given its own back */
    CHECK(named_at(true) == function);
    put_word(HANDLE, REFERENCES, 0); /* freed: nobody's */
    CHECK(named_at(true) == 0);
    put_word(HANDLE, REFERENCES, 1);
    put_word(HANDLE, CONTEXT, 0);
    CHECK(named_at(true) == 0);
}

static void test_memory_that_was_used_again_tells_nothing(void)
{
    set_up();
    put_handle(HANDLE, other_context, LC_UVLOOP_PLAIN); /* by another handle */
    CHECK(named() == 0);
    set_up();
    put_word(HANDLE, TYPE, timer_type);
    CHECK(named() == 0);
    set_up();
    for (uint32_t i = 0; i < HANDLE_BYTES / 8; i++) { /* by anything */
        put_word(HANDLE, i, context);
    }
    CHECK(named() == 0);
}

static void test_a_context_that_is_there_twice_tells_nothing(void)
{
    set_up();
    put_word(HANDLE, CONTEXT + 6u, context);
    CHECK(named() == 0);
}

static void test_kinds_that_there_are_not_tell_nothing(void)
{
    set_up();
    put_handle(HANDLE, context, 0);
    CHECK(named() == 0);
    put_handle(HANDLE, context, LC_UVLOOP_KINDS + 1u);
    CHECK(named() == 0);
}

static void test_words_that_are_no_address_are_not_followed(void)
{
    static const uint64_t words[] = {0, 8, 4088, 0x10000201, 0x7FFFFFFFFFF8, UINT64_C(0xFFFF800000000000), UINT64_MAX};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        set_up();
        put_note(words[i], HANDLE_BYTES);
        CHECK(named() == 0);
    }
}

static void test_memory_that_ends_inside_the_handle_tells_nothing(void)
{
    set_up();
    put_handle(LAST_WORDS, context, LC_UVLOOP_PLAIN);
    put_note(made_up_at(LAST_WORDS), HANDLE_BYTES);
    CHECK(named() == 0);
}

static void test_sizes_that_are_none_tell_nothing(void)
{
    static const uint64_t sizes[] = {0, 8, 16, 24, 8 * (CONTEXT + LC_UVLOOP_FIRST)};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        set_up();
        put_note(made_up_at(HANDLE), sizes[i]);
        CHECK(named() == 0);
    }
    put_note(made_up_at(HANDLE), UINT64_MAX); /* what is looked at has an end */
    CHECK(named() == function);
}

static void test_a_note_that_is_gone_tells_nothing(void)
{
    set_up();
    CHECK(lc_uvloop_work_object(&source, made_up_at(MADE_UP_BYTES) | LC_WORK_UVLOOP, false) == 0);
    put_note(0, 0);
    CHECK(named() == 0);
}

/* The note is that of the next callback by the time that it is read: its handle or its context. */
static void test_a_note_of_two_callbacks_tells_nothing(void)
{
    set_up();
    put_handle(OTHER, other_context, LC_UVLOOP_PLAIN);
    put_word(NOTE, 0, made_up_at(OTHER));
    CHECK(named() == 0);
    put_word(NOTE, 0, made_up_at(HANDLE));
    put_word(NOTE, 1, other_context);
    CHECK(named() == 0);
}

int main(void)
{
    test_a_note_is_told_from_other_words();
    test_a_handle_that_runs_tells_its_callable();
    test_a_handle_of_uvloop_s_own_tells_its_name();
    test_a_handle_that_is_over_tells_nothing();
    test_a_handle_that_waits_tells_nothing();
    test_a_handle_that_leaves_its_context_tells_its_callable_to_its_own_thread();
    test_memory_that_was_used_again_tells_nothing();
    test_a_context_that_is_there_twice_tells_nothing();
    test_kinds_that_there_are_not_tell_nothing();
    test_words_that_are_no_address_are_not_followed();
    test_memory_that_ends_inside_the_handle_tells_nothing();
    test_sizes_that_are_none_tell_nothing();
    test_a_note_that_is_gone_tells_nothing();
    test_a_note_of_two_callbacks_tells_nothing();
    return 0;
}
