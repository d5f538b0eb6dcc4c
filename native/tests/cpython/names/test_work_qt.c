/* Classes by the names of their C++ types, and names of events: those that are, and those that lie. */
#include "cpython/names/work_qt.h"

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
    static const char *const names[] = {"",    "*",     "N",       "N3",  "0",           "99Short",
                                        "QTimer", "3A-B", "999999999999Q", "12", "ZN3foo3barEvE5Local"};
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
    CHECK((work & LC_WORK_QT_RECEIVER_MASK) == UINT64_C(0x00007F1234567890));
    CHECK(work >> 48 == 65535);
    CHECK(!lc_is_qt_work(UINT64_C(0x00007F1234567890)));
    CHECK(!lc_is_qt_work(0));
}

TEST(test_an_event_that_deletes_its_receiver_leaves_none_to_be_named)
{
    const uint64_t receiver = UINT64_C(0x00007F1234567890);
    const uint64_t work = lc_qt_work_ended(lc_qt_work(receiver, LC_QT_TYPE_DEFERRED_DELETE));
    CHECK(lc_is_qt_work(work) && (work & LC_WORK_QT_RECEIVER_MASK) == 0);
    CHECK(strcmp(lc_qt_event_name((uint32_t)(work >> 48)), "DeferredDelete") == 0);
    CHECK(lc_qt_work_ended(lc_qt_work(receiver, 12)) == lc_qt_work(receiver, 12));
}

/* ---- classes of Python ------------------------------------------------------------------- */

enum {
    RECEIVER = 0x100,
    OBJECT = 0x200,
    OWN_TYPE = 0x300,
    WRAPPER_TYPE = 0x400,
    THE_TYPE = 0x500, /* `type` */
    NAME = 0x600,
    MANAGER = 0x700,
    MAP = 0x740,
    BUCKETS = 0x780,
    BEFORE = 0x7C0,
    NODE = 0x800,
    LAST_NODE = 0x840,
    TABLE = 0x880,
    TYPE_INFO = 0x8C0,
    CXX_NAME = 0x900,
};
enum { TIMER = 1, SELF_AT = 40, MANY_BUCKETS = 3 };

static made_up_memory memory;
static lc_layout layout = {.object_type = 8, .type_name = 24};
static lc_cpython_source source;

static void put_word(uint64_t at, uint64_t value) { made_up_put(&memory, at, value, 8); }

static void put_text(uint64_t at, const char *text)
{
    for (size_t i = 0; i <= strlen(text); i++) {
        made_up_put(&memory, at + i, (unsigned char)text[i], 1);
    }
}

/* A QTimer of C++, and a Python object `Board` whose C++ object is not known yet. */
static void set_up(void)
{
    memset(&memory, 0, sizeof memory);
    memory.reader = (lc_memory_reader){.read = made_up_read};
    source = (lc_cpython_source){.reader = &memory.reader, .layout = layout};
    put_word(RECEIVER, made_up_at(TABLE + 8));
    put_word(TABLE, made_up_at(TYPE_INFO));
    put_word(TYPE_INFO + 8, made_up_at(CXX_NAME));
    put_text(CXX_NAME, "6QTimer");
    put_word(OBJECT + 8, made_up_at(OWN_TYPE));
    put_word(OWN_TYPE + 8, made_up_at(WRAPPER_TYPE));
    put_word(OWN_TYPE + 24, made_up_at(NAME));
    put_word(WRAPPER_TYPE + 8, made_up_at(THE_TYPE));
    put_word(THE_TYPE + 8, made_up_at(THE_TYPE));
    put_text(NAME, "Board");
    lc_qt_use_wrappers(0);
}

static int is_named(const char *expected)
{
    char text[LC_STRING_MAX];
    const lc_text name = lc_qt_work_name(&source, lc_qt_work(made_up_at(RECEIVER), TIMER), text);
    return name.length == strlen(expected) && memcmp(text, expected, name.length) == 0;
}

static void put_sip(void)
{
    put_word(RECEIVER + SELF_AT, made_up_at(OBJECT));
    put_word(OBJECT + 16, made_up_at(RECEIVER));
}

TEST(test_sip_s_object_leads_back)
{
    set_up();
    CHECK(is_named("QTimer: Timer"));
    put_sip();
    CHECK(is_named("Board: Timer"));
    put_text(NAME, "PyQt6.QtCore.QTimer");
    CHECK(is_named("QTimer: Timer"));
    put_text(NAME, "Br\xC3\xBC" "cke");
    CHECK(is_named("Br\xC3\xBC" "cke: Timer"));
    put_word(OBJECT + 16, made_up_at(RECEIVER) + 8);
    CHECK(is_named("QTimer: Timer"));
}

TEST(test_what_is_no_python_object_has_no_class)
{
    set_up();
    put_sip();
    put_word(THE_TYPE + 8, made_up_at(OWN_TYPE)); /* types in a circle */
    CHECK(is_named("QTimer: Timer"));
    put_word(THE_TYPE + 8, 0);
    CHECK(is_named("QTimer: Timer"));
    set_up();
    put_sip();
    put_word(OWN_TYPE + 24, 0x10); /* no memory */
    CHECK(is_named("QTimer: Timer"));
}

static void put_shiboken(void)
{
    put_word(MANAGER, made_up_at(MAP));
    put_word(MAP, made_up_at(BUCKETS));
    put_word(MAP + 8, MANY_BUCKETS);
    put_word(BUCKETS + 8 * (made_up_at(RECEIVER) % MANY_BUCKETS), made_up_at(BEFORE));
    put_word(BEFORE, made_up_at(NODE));
    put_word(NODE, made_up_at(LAST_NODE));
    put_word(NODE + 8, 0x1230);
    put_word(LAST_NODE + 8, made_up_at(RECEIVER));
    put_word(LAST_NODE + 16, made_up_at(OBJECT));
    lc_qt_use_wrappers(made_up_at(MANAGER));
}

TEST(test_shiboken_s_map_is_searched)
{
    set_up();
    put_shiboken();
    CHECK(is_named("Board: Timer"));
    put_word(NODE, made_up_at(NODE)); /* changed meanwhile: a chain without end */
    CHECK(is_named("QTimer: Timer"));
    put_word(MAP + 8, 0);
    CHECK(is_named("QTimer: Timer"));
    lc_qt_use_wrappers(0x10);
    CHECK(is_named("QTimer: Timer"));
    lc_qt_use_wrappers(0);
}

int main(void) { return run_tests(); }
