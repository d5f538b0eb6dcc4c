/* Classes by the names of their C++ types, and names of events: those that are, and those that lie. */
#include "work_qt.h"

#include <string.h>

#include "../core/check.h"

static int is_class(const char *mangled, const char *expected)
{
    const char *begin = "";
    const uint32_t bytes = lc_qt_class_name(mangled, (uint32_t)strlen(mangled), &begin);
    return bytes == strlen(expected) && memcmp(begin, expected, bytes) == 0;
}

static void test_classes(void)
{
    CHECK(is_class("6QTimer", "QTimer"));
    CHECK(is_class("18QPushButtonWrapper", "QPushButton"));
    CHECK(is_class("14sipQPushButton", "QPushButton"));
    CHECK(is_class("*11QPrivateOne", "QPrivateOne"));
    CHECK(is_class("N2Qt5Inner4DeepE", "Deep"));
    CHECK(is_class("7Wrapper", "Wrapper"));
    CHECK(is_class("4sipQ", "sipQ"));
}

static void test_names_that_are_none(void)
{
    static const char *const names[] = {"",    "*",     "N",       "N3",  "0",           "99Short",
                                        "QTimer", "3A-B", "999999999999Q", "12", "ZN3foo3barEvE5Local"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        CHECK(is_class(names[i], ""));
    }
}

static void test_events(void)
{
    CHECK(strcmp(lc_qt_event_name(1), "Timer") == 0);
    CHECK(strcmp(lc_qt_event_name(12), "Paint") == 0);
    CHECK(strcmp(lc_qt_event_name(43), "MetaCall") == 0);
    CHECK(lc_qt_event_name(0) == NULL);
    CHECK(lc_qt_event_name(999) == NULL);
    CHECK(lc_qt_event_name(1000) == NULL);
    CHECK(lc_qt_event_name(65535) == NULL);
}

static void test_words_tell_what_they_are(void)
{
    const uint64_t work = lc_qt_work(UINT64_C(0x00007F1234567890), 65535);
    CHECK(lc_is_qt_work(work));
    CHECK((work & LC_WORK_QT_RECEIVER_MASK) == UINT64_C(0x00007F1234567890));
    CHECK(work >> 48 == 65535);
    CHECK(!lc_is_qt_work(UINT64_C(0x00007F1234567890)));
    CHECK(!lc_is_qt_work(0));
}

static void test_an_event_that_deletes_its_receiver_leaves_none_to_be_named(void)
{
    const uint64_t receiver = UINT64_C(0x00007F1234567890);
    const uint64_t work = lc_qt_work_ended(lc_qt_work(receiver, LC_QT_TYPE_DEFERRED_DELETE));
    CHECK(lc_is_qt_work(work) && (work & LC_WORK_QT_RECEIVER_MASK) == 0);
    CHECK(strcmp(lc_qt_event_name((uint32_t)(work >> 48)), "DeferredDelete") == 0);
    CHECK(lc_qt_work_ended(lc_qt_work(receiver, 12)) == lc_qt_work(receiver, 12));
}

int main(void)
{
    test_classes();
    test_names_that_are_none();
    test_events();
    test_words_tell_what_they_are();
    test_an_event_that_deletes_its_receiver_leaves_none_to_be_named();
    return 0;
}
