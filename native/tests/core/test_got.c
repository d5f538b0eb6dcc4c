/* Entries of this very program's table of imported functions, replaced and put back. */
#include "got.h"

#include <stdint.h>
#include <unistd.h>

#include "check.h"

enum { MADE_UP = 4711, SOMEBODY_ELSE_S = 4712 };

static pid_t made_up(void) { return MADE_UP; }
static pid_t somebody_else_s(void) { return SOMEBODY_ELSE_S; }

/* Not inlined, and not known to the compiler to be the same twice. */
static __attribute__((noinline)) pid_t ask(void) { return getppid(); }

static bool replace(lc_got_patch *patch, void *function)
{
    return lc_got_replace(patch, (const void *)(uintptr_t)ask, "getppid", function, (void *)(uintptr_t)getppid);
}

static void a_call_goes_to_the_replacement_and_back(void)
{
    const pid_t truth = ask();
    lc_got_patch patch = {0};
    CHECK(replace(&patch, (void *)(uintptr_t)made_up));
    CHECK(ask() == MADE_UP);
    CHECK(((pid_t(*)(void))(uintptr_t)patch.original)() == truth || patch.original == (void *)(uintptr_t)getppid);
    lc_got_restore(&patch);
    CHECK(ask() == truth);
    lc_got_restore(&patch); /* once more changes nothing */
    CHECK(ask() == truth);
}

static void what_somebody_else_has_laid_over_it_stays(void)
{
    const pid_t truth = ask();
    lc_got_patch ours = {0}, theirs = {0};
    CHECK(replace(&ours, (void *)(uintptr_t)made_up));
    CHECK(replace(&theirs, (void *)(uintptr_t)somebody_else_s));
    lc_got_restore(&ours);
    CHECK(ask() == SOMEBODY_ELSE_S);
    theirs.original = ours.original;
    lc_got_restore(&theirs);
    CHECK(ask() == truth);
}

static void what_is_not_called_cannot_be_replaced(void)
{
    lc_got_patch patch = {0};
    CHECK(!lc_got_replace(&patch, (const void *)(uintptr_t)ask, "no_such_function", (void *)(uintptr_t)made_up,
                          NULL));
    CHECK(patch.entry == NULL);
    int local = 0;
    CHECK(!lc_got_replace(&patch, &local, "getppid", (void *)(uintptr_t)made_up, NULL));
}

int main(void)
{
    a_call_goes_to_the_replacement_and_back();
    what_somebody_else_has_laid_over_it_stays();
    what_is_not_called_cannot_be_replaced();
    return 0;
}
