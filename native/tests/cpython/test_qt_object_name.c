/* Where Qt's objects keep their names: learned from two that are known, of Qt 6 and of Qt 5; and objects that are gone, or lie. */
#include "qt_object_name.h"

#include <string.h>

#include "../../fuzz/made_up_memory.h"
#include "../core/check.h"

enum { FIRST = 0x1000, SECOND = 0x3000, THIRD = 0x5000 };
enum { INSIDE = 0x100, EXTRA = 0x400, TEXT = 0x800, HEAD = 0x900 }; /* from the object */
enum { EXTRA_AT = 88, NAME_AT = 96 };

static made_up_memory memory;
static lc_cpython_source source;

static void put_word(uint64_t at, uint64_t value) { made_up_put(&memory, at, value, 8); }

static uint32_t put_units(uint64_t at, const char *text)
{
    const uint32_t units = (uint32_t)strlen(text);
    for (uint32_t i = 0; i < units; i++) {
        made_up_put(&memory, at + 2u * i, (unsigned char)text[i], 2);
    }
    return units;
}

static void put_object(uint64_t at)
{
    put_word(at + 8, made_up_at(at + INSIDE));
    put_word(at + INSIDE + 8, made_up_at(at));
    put_word(at + INSIDE + EXTRA_AT, made_up_at(at + EXTRA));
}

static void put_qt_6(uint64_t at, const char *name)
{
    put_object(at);
    put_word(at + EXTRA + NAME_AT, made_up_at(at + HEAD));
    put_word(at + EXTRA + NAME_AT + 8, made_up_at(at + TEXT));
    put_word(at + EXTRA + NAME_AT + 16, put_units(at + TEXT, name));
}

static void put_qt_5(uint64_t at, const char *name)
{
    put_object(at);
    put_word(at + EXTRA + NAME_AT, made_up_at(at + HEAD));
    put_word(at + HEAD, (uint64_t)put_units(at + HEAD + 24, name) << 32 | 1u);
    put_word(at + HEAD + 16, 24);
}

static void set_up(void)
{
    memset(&memory, 0, sizeof memory);
    memory.reader = (lc_memory_reader){.read = made_up_read};
    source = (lc_cpython_source){.reader = &memory.reader};
    lc_qt_forget_object_names();
}

static bool learn(const char *first, const char *second)
{
    uint16_t wide[2][64];
    const char *const names[] = {first, second};
    lc_qt_named known[2];
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t units = (uint32_t)strlen(names[i]);
        for (uint32_t k = 0; k < units && k < 64u; k++) {
            wide[i][k] = (unsigned char)names[i][k];
        }
        known[i] = (lc_qt_named){made_up_at(i == 0 ? FIRST : SECOND), wide[i], units};
    }
    return lc_qt_learn_object_names(&source, known);
}

static int is_called(uint64_t object, const char *expected)
{
    char name[LC_QT_OBJECT_NAME_BYTES];
    const uint32_t bytes = lc_qt_object_name(&source, made_up_at(object), name);
    return bytes == strlen(expected) && memcmp(name, expected, bytes) == 0;
}

static void test_names_of_both_versions(void)
{
    void (*const puts[])(uint64_t, const char *) = {put_qt_6, put_qt_5};
    for (uint32_t i = 0; i < 2; i++) {
        set_up();
        puts[i](FIRST, "the first one");
        puts[i](SECOND, "and the second");
        puts[i](THIRD, "buy");
        CHECK(is_called(THIRD, ""));
        CHECK(learn("the first one", "and the second"));
        CHECK(is_called(THIRD, "buy"));
        puts[i](THIRD, "a \"b\"\n");
        CHECK(is_called(THIRD, "a 'b'?"));
        puts[i](THIRD, "");
        CHECK(is_called(THIRD, ""));
        puts[i](THIRD, "qt_scrollarea_viewport");
        CHECK(is_called(THIRD, ""));
        puts[i](THIRD, "QMainWindowClassWindow");
        CHECK(is_called(THIRD, ""));
        puts[i](THIRD, "0123456789012345678901234567890123456789 and more");
        CHECK(is_called(THIRD, "0123456789012345678901234567890123456789"));
        lc_qt_forget_object_names();
        CHECK(is_called(THIRD, ""));
    }
}

static void test_characters_beyond_ascii(void)
{
    set_up();
    put_qt_6(FIRST, "the first one");
    put_qt_6(SECOND, "and the second");
    CHECK(learn("the first one", "and the second"));
    put_qt_6(THIRD, "four");
    static const uint16_t units[] = {0xFCu, 0x20ACu, 0xD83Du, 0xDC26u};
    for (uint32_t i = 0; i < 4; i++) {
        made_up_put(&memory, THIRD + TEXT + 2u * i, units[i], 2);
    }
    CHECK(is_called(THIRD, "\xC3\xBC\xE2\x82\xAC\xF0\x9F\x90\xA6"));
    made_up_put(&memory, THIRD + TEXT + 6u, 'x', 2); /* half a pair */
    CHECK(is_called(THIRD, "\xC3\xBC\xE2\x82\xAC?x"));
}

static void test_what_does_not_fit_both_is_not_learned(void)
{
    set_up();
    put_qt_6(FIRST, "the first one");
    put_qt_5(SECOND, "and the second");
    CHECK(!learn("the first one", "and the second"));
    CHECK(is_called(FIRST, ""));
    put_qt_6(SECOND, "another name");
    CHECK(!learn("the first one", "and the second"));
    put_qt_6(SECOND, "short");
    CHECK(!learn("the first one", "short"));
    put_qt_6(SECOND, "and the second");
    put_word(SECOND + INSIDE + 8, made_up_at(FIRST)); /* another object's */
    CHECK(!learn("the first one", "and the second"));
}

static void test_objects_that_are_gone_or_lie_have_no_name(void)
{
    set_up();
    put_qt_6(FIRST, "the first one");
    put_qt_6(SECOND, "and the second");
    CHECK(learn("the first one", "and the second"));
    put_qt_6(THIRD, "buy");
    CHECK(is_called(THIRD, "buy"));
    put_word(THIRD + EXTRA + NAME_AT + 16, UINT64_C(1) << 40);
    CHECK(is_called(THIRD, ""));
    put_qt_6(THIRD, "buy");
    put_word(THIRD + EXTRA + NAME_AT + 8, 0x10); /* no memory */
    CHECK(is_called(THIRD, ""));
    put_qt_6(THIRD, "buy");
    put_word(THIRD + INSIDE + EXTRA_AT, 0);
    CHECK(is_called(THIRD, ""));
    put_qt_6(THIRD, "buy");
    put_word(THIRD + INSIDE + 8, 0x1234); /* freed: what it was part of is not known any more */
    CHECK(is_called(THIRD, ""));
    CHECK(is_called(MADE_UP_BYTES - 8u, ""));
}

int main(void)
{
    test_names_of_both_versions();
    test_characters_beyond_ascii();
    test_what_does_not_fit_both_is_not_learned();
    test_objects_that_are_gone_or_lie_have_no_name();
    return 0;
}
