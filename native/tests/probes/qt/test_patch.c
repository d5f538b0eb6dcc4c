/* Which objects' functions are known to be replaced, and what they were: a call through NULL would end the
 * program. */
#include "probes/qt/patch.c"

#include "tests/check.h"

enum { FUNCTIONS = 4, REPLACED = 1 };

static void original(void) {}
static void replacement(void) {}

#define CODE(function) ((void *)(uintptr_t)(function))

/* In a loaded object, as those of classes are; as long as what is copied of one. */
static word class_s[WORDS_BEFORE + WORDS_MAX], other_class_s[WORDS_BEFORE + WORDS_MAX];

typedef struct {
    word *table;
} object;

static void construct(object *it, word *table)
{
    table[WORDS_BEFORE + REPLACED] = CODE(original);
    it->table = table + WORDS_BEFORE;
}

static bool lay_on(object *it) { return lc_qt_patch_lay(it, REPLACED, CODE(replacement)); }

static bool calls_are_ours(const object *it)
{
    return it->table[REPLACED] == CODE(replacement) && lc_qt_patch_original(it, REPLACED) == CODE(original);
}

TEST(an_object_that_outlives_its_application_is_not_forgotten)
{
    object dispatcher;
    construct(&dispatcher, class_s);
    CHECK(lay_on(&dispatcher) && calls_are_ours(&dispatcher));
    lc_qt_patch_forget(&dispatcher);
    CHECK(lay_on(&dispatcher) && calls_are_ours(&dispatcher));
}

TEST(an_object_whose_table_others_copied_is_not_forgotten)
{
    object dispatcher;
    word theirs[FUNCTIONS];
    construct(&dispatcher, class_s);
    CHECK(lay_on(&dispatcher));
    memcpy(theirs, dispatcher.table, sizeof theirs);
    dispatcher.table = theirs;
    lc_qt_patch_forget(&dispatcher);
    CHECK(!lay_on(&dispatcher) && calls_are_ours(&dispatcher));
}

TEST(a_new_object_at_an_old_address_is_laid_anew)
{
    object application;
    construct(&application, class_s);
    CHECK(lay_on(&application));
    construct(&application, other_class_s);
    CHECK(!lay_on(&application));
    lc_qt_patch_forget(&application);
    CHECK(lc_qt_patch_original(&application, REPLACED) == NULL);
    CHECK(lay_on(&application) && calls_are_ours(&application));
}

int main(void) { return run_tests(); }
