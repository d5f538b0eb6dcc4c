/* Classes by the names of their C++ types, and names of events: those that are, and those that lie. */
#include "cpython/names/work_words.h"

#include <string.h>

#include "fuzz/made_up_memory.h"
#include "tests/check.h"

static int is_class(const char *mangled, const char *expected)
{
    const char *begin = "";
    const uint32_t bytes = lc_qt_class_name(mangled, (uint32_t)strlen(mangled), &begin);
    return bytes == strlen(expected) && memcmp(begin, expected, bytes) == 0;
}

TEST(test_classes)
{
    CHECK(is_class("6QTimer", "QTimer"));
    CHECK(is_class("18QPushButtonWrapper", "QPushButton"));
    CHECK(is_class("14sipQPushButton", "QPushButton"));
    CHECK(is_class("*11QPrivateOne", "QPrivateOne"));
    CHECK(is_class("N2Qt5Inner4DeepE", "Deep"));
    CHECK(is_class("7Wrapper", "Wrapper"));
    CHECK(is_class("4sipQ", "sipQ"));
    CHECK(is_class("N11QQmlPrivate11QQmlElementI15QQuickMouseAreaEE", "QQuickMouseArea"));
    CHECK(is_class("N11QQmlPrivate11QQmlElementIN2My5ThingEEE", "Thing"));
    CHECK(is_class("N11QQmlPrivate11QQmlElementI", "QQmlElement"));
    CHECK(is_class("N11QQmlPrivate11QQmlElementI99ShortEE", "QQmlElement"));
    CHECK(is_class("N2My5ArrayI5ThingEE", "Array"));
}

TEST(test_names_that_are_none)
{
    static const char *const names[] = {
        "", "*", "N", "N3", "0", "99Short", "QTimer", "3A-B", "999999999999Q", "12", "ZN3foo3barEvE5Local"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        CHECK(is_class(names[i], ""));
    }
}

TEST(test_events)
{
    CHECK(strcmp(lc_qt_event_name(1), "Timer") == 0);
    CHECK(strcmp(lc_qt_event_name(12), "Paint") == 0);
    CHECK(strcmp(lc_qt_event_name(43), "MetaCall") == 0);
    CHECK(lc_qt_event_name(0) == NULL);
    CHECK(lc_qt_event_name(999) == NULL);
    CHECK(lc_qt_event_name(1000) == NULL);
    CHECK(lc_qt_event_name(65535) == NULL);
}

TEST(test_words_tell_what_they_are)
{
    const uint64_t work = lc_qt_work(UINT64_C(0x00007F1234567890), 65535);
    CHECK(lc_is_qt_work(work));
    CHECK((work & LC_WORK_ADDRESS_MASK) == UINT64_C(0x00007F1234567890));
    CHECK(work >> 48 == 65535);
    CHECK(!lc_is_qt_work(UINT64_C(0x00007F1234567890)));
    CHECK(!lc_is_qt_work(0));
}

TEST(test_an_event_that_deletes_its_receiver_leaves_none_to_be_named)
{
    const uint64_t receiver = UINT64_C(0x00007F1234567890);
    const uint64_t work = lc_qt_work_ended(lc_qt_work(receiver, LC_QT_TYPE_DEFERRED_DELETE));
    CHECK(lc_is_qt_work(work) && (work & LC_WORK_ADDRESS_MASK) == 0);
    CHECK(strcmp(lc_qt_event_name((uint32_t)(work >> 48)), "DeferredDelete") == 0);
    CHECK(lc_qt_work_ended(lc_qt_work(receiver, 12)) == lc_qt_work(receiver, 12));
}

/* ---- names of a receiver ----------------------------------------------------------------- */

enum { RECEIVER = 0x100, TABLE = 0x180, TYPE_INFO = 0x1C0, CXX_NAME = 0x200, TIMER = 1 };

static made_up_memory memory;
static lc_cpython_source source;

static void put_word(uint64_t at, uint64_t value) { made_up_put(&memory, at, value, 8); }

static void set_up(void)
{
    memset(&memory, 0, sizeof memory);
    memory.reader = (lc_memory_reader){.read = made_up_read};
    source = (lc_cpython_source){.reader = &memory.reader};
    put_word(RECEIVER, made_up_at(TABLE + 8));
    put_word(TABLE, made_up_at(TYPE_INFO));
    put_word(TYPE_INFO + 8, made_up_at(CXX_NAME));
    for (const char *text = "6QTimer", *c = text; *c != 0; c++) {
        made_up_put(&memory, CXX_NAME + (uint64_t)(c - text), (unsigned char)*c, 1);
    }
}

static int is_named(const char *expected)
{
    char text[LC_STRING_MAX];
    const lc_text name = lc_qt_work_name(&source, lc_qt_work(made_up_at(RECEIVER), TIMER), text);
    return name.length == strlen(expected) && memcmp(text, expected, name.length) == 0;
}

TEST(test_a_receiver_is_named_by_its_virtual_table)
{
    set_up();
    CHECK(is_named("QTimer: Timer"));
    put_word(TYPE_INFO + 8, 0x10); /* no memory */
    CHECK(is_named("Timer"));
    put_word(TABLE, 0);
    CHECK(is_named("Timer"));
    put_word(RECEIVER, 0);
    CHECK(is_named("Timer"));
}

int main(void) { return run_tests(); }
