/* The watchdog says a hang's first word itself, where nobody has judged it in time: which frame it names,
 * and when it is silent. */
#include <string.h>

#include "core/keeper/courier.h"
#include "tests/core/lane/still_stage.h"

static stage s;
static lc_courier courier;
static char *folders[] = {"/srv/shop", "/usr/lib/python3", "/srv/shop/.venv/lib", NULL};

static lc_slot_writer *fresh_slot(void)
{
    lc_slot_writer *const writer = s.watchdog.writers;
    lc_slot_writer_begin(writer, lc_flight_claim(&s.flight, LC_SECTION_SLOTS, 0));
    return writer;
}

static uint64_t serial; /* of the codes: each is another one */

/* A sample whose frames, innermost first, are in these files, in line 10, 11 ... */
static void put_sample(lc_slot_writer *writer, const char *const files[], const char *function)
{
    static lc_stack stack;
    lc_code_facts codes[4];
    stack.count = 0;
    stack.hash = ++serial;
    for (; files[stack.count] != NULL; stack.count++) {
        const char *const file = files[stack.count];
        codes[stack.count] = (lc_code_facts){
            ++serial, {file, (uint32_t)strlen(file)}, {function, (uint32_t)strlen(function)}, 1, 0};
        stack.frames[stack.count] = (lc_frame){&codes[stack.count], 10 + stack.count, 10 + stack.count, 1, 5};
    }
    const lc_sample_entry sample = {.stack = lc_slot_put_stack(writer, &stack)};
    CHECK(lc_slot_put_sample(writer, &sample));
}

static void says(const lc_slot *slot, uint64_t ms, const char *expected)
{
    char text[LC_FIRST_WORD_BYTES];
    const size_t bytes = lc_first_word(slot, ms * 1000000u, folders, text);
    CHECK(bytes == strlen(expected) && memcmp(text, expected, bytes) == 0);
}

TEST(the_innermost_frame_of_the_program_is_named)
{
    lc_slot_writer *const writer = fresh_slot();
    const char *const files[] = {"<frozen os>", "/usr/lib/python3/json.py", "/srv/shop/.venv/lib/api.py",
                                 NULL};
    const char *const own[] = {"/usr/lib/python3/re.py", "/srv/shop/mail.py", "/srv/shop/app.py", NULL};
    put_sample(writer, files, "loads");
    says(writer->slot, 1049, "[loopcanary] blocked for 1.0 s in <frozen os>:10, loads\n");
    put_sample(writer, own, "parse");
    says(writer->slot, 12750, "[loopcanary] blocked for 12.7 s in mail.py:11, parse\n");
}

TEST(without_a_stack_it_says_how_long)
{
    lc_slot_writer *const writer = fresh_slot();
    const lc_sample_entry sample = {.stack = LC_NO_REF};
    says(writer->slot, 1000, "[loopcanary] blocked for 1.0 s\n");
    CHECK(lc_slot_put_sample(writer, &sample));
    says(writer->slot, 1000, "[loopcanary] blocked for 1.0 s\n");
}

TEST(names_write_no_control_characters)
{
    lc_slot_writer *const writer = fresh_slot();
    const char *const files[] = {"/elsewhere/\x1b[2J\xc2\x9b\xc3\xa9\xe2\x82\xac.py", NULL};
    put_sample(writer, files,
               "a\nb\xe2\x80\xae"
               "c\xe2\x80\xa8\xd8\x9c\xe2\x81\xa6\xe2");
    says(writer->slot, 1000,
         "[loopcanary] blocked for 1.0 s in /elsewhere/?[2J?\xc3\xa9\xe2\x82\xac.py:10, a?b?c???\xe2\n");
}

TEST(the_longest_names_fit)
{
    char file[600], function[600];
    lc_slot_writer *const writer = fresh_slot();
    memset(file, 'f', sizeof file);
    memset(function, 'g', sizeof function);
    file[sizeof file - 1u] = function[sizeof function - 1u] = '\0';
    const char *const files[] = {file, NULL};
    char text[LC_FIRST_WORD_BYTES];
    put_sample(writer, files, function);
    CHECK(lc_first_word(writer->slot, UINT64_MAX, folders, text) > 2u * LC_STRING_MAX);
}

static void begin_hang(void)
{
    atomic_store(&courier.word_bytes, 0);
    LC_STORE(s.lane->turn_rest, 0);
    lc_turn_begin(stage_context(&s), s.lane);
    lc_callback_begin(s.lane, 7, 0);
    age_callback(&s, 1001);
    look(&s);
}

static void end_hang(void)
{
    lc_callback_end(stage_context(&s), s.lane);
    lc_turn_end(stage_context(&s), s.lane);
    look(&s);
}

/* The time in which it may be judged is over. */
static void look_later(void)
{
    CHECK(s.watchdog.watches[0].word_ns > lc_now_ns());
    s.watchdog.watches[0].word_ns = 1;
    look(&s);
}

TEST(a_hang_that_nobody_has_judged_is_said_once)
{
    begin_hang();
    CHECK(atomic_load(&courier.word_bytes) == 0);
    look_later();
    const size_t bytes = atomic_load(&courier.word_bytes);
    CHECK(bytes > 0 && memmem(courier.word, bytes, " s in app.py:10, handler\n", 25) != NULL);
    atomic_store(&courier.word_bytes, 0);
    look(&s);
    CHECK(atomic_load(&courier.word_bytes) == 0 && s.watchdog.watches[0].word_ns == 0);
    end_hang();
}

TEST(one_that_was_judged_is_not)
{
    begin_hang();
    const lc_slot *const its = s.watchdog.watches[0].writer->slot;
    LC_STORE(s.flight.keeper->told[LC_SLOT_COUNT - 1u], LC_LOAD(its->serial)); /* in a slot that it had */
    look_later();
    CHECK(atomic_load(&courier.word_bytes) == 0);
    end_hang();
}

TEST(one_that_is_over_is_not)
{
    begin_hang();
    end_hang();
    CHECK(atomic_load(&courier.word_bytes) == 0);
    begin_hang();
    CHECK(s.watchdog.watches[0].word_ns > lc_now_ns()); /* the next has its own time */
    end_hang();
}

TEST(where_the_console_is_off_nothing_is_said)
{
    atomic_store(&courier.folders, NULL);
    begin_hang();
    look_later();
    CHECK(atomic_load(&courier.word_bytes) == 0);
    end_hang();
}

int main(void)
{
    stage_open_still(&s);
    s.source.depth = 1;
    lc_courier_open(&courier, &s.flight);
    atomic_store(&courier.life, LC_LIFE_RUNS); /* no thread: it is asked in vain */
    atomic_store(&courier.folders, folders);
    s.watchdog.courier = &courier;
    run_tests();
    s.watchdog.courier = NULL;
    stage_close(&s);
    return 0;
}
