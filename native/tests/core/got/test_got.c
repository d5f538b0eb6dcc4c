/* Entries of tables of imported functions, replaced and put back: of this very program, and of a library
 * in each way that a linker can bind it (relocations/calls.c). */
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include "tests/core/got/bound_library.h"

/* ---- this program ------------------------------------------------------------------------ */

static pid_t made_up(void) { return MADE_UP; }
static pid_t another_s(void) { return ANOTHER_S; }

/* Not inlined, and not known to the compiler to be the same twice. */
static __attribute__((noinline)) pid_t ask(void) { return getppid(); }

static const lc_got_object own_program = {.address = (const void *)(uintptr_t)ask};
static const lc_got_call of_getppid = {.symbol = "getppid", .fallback = (void *)(uintptr_t)getppid};

static bool replace(lc_got_patch *patch, void *function)
{
    return lc_got_replace(own_program, of_getppid, choose, function, patch, 1) == 1;
}

TEST(a_call_goes_to_the_replacement_and_back)
{
    const pid_t truth = ask();
    lc_got_patch patch = {0};
    CHECK(replace(&patch, CODE(made_up)));
    CHECK(ask() == MADE_UP);
    CHECK(lc_got_is_in_place(&patch));
    CHECK(((pid_t (*)(void))(uintptr_t)patch.original)() == truth);
    CHECK(lc_got_restore(&patch));
    CHECK(ask() == truth);
    CHECK(lc_got_restore(&patch)); /* once more changes nothing */
    CHECK(ask() == truth);
    CHECK(!lc_got_is_in_place(&patch));
}

TEST(what_another_has_laid_over_it_stays)
{
    const pid_t truth = ask();
    lc_got_patch ours = {0}, theirs = {0};
    CHECK(replace(&ours, CODE(made_up)));
    CHECK(replace(&theirs, CODE(another_s)));
    CHECK(!lc_got_is_in_place(&ours));
    CHECK(lc_got_restore(&ours));
    CHECK(ask() == ANOTHER_S);
    theirs.original = ours.original;
    CHECK(lc_got_restore(&theirs));
    CHECK(ask() == truth);
}

TEST(what_is_replaced_already_or_refused_does_not_count)
{
    lc_got_patch patch = {0}, again = {0};
    CHECK(replace(&patch, CODE(made_up)));
    CHECK(!replace(&again, CODE(made_up)));
    CHECK(!replace(&again, NULL));
    CHECK(ask() == MADE_UP);
    CHECK(lc_got_restore(&patch));
}

TEST(what_is_not_called_cannot_be_replaced)
{
    lc_got_patch patch = {0};
    const lc_got_call no_such = {.symbol = "no_such_function", .fallback = CODE(getppid)};
    int local = 0;
    CHECK(lc_got_replace(own_program, no_such, choose, CODE(made_up), &patch, 1) == 0);
    CHECK(lc_got_replace((lc_got_object){.address = &local}, of_getppid, choose, CODE(made_up), &patch, 1) ==
          0);
    CHECK(lc_got_replace((lc_got_object){.path = "no-such-library.so"}, of_getppid, choose, CODE(made_up),
                         &patch, 1) == 0);
    CHECK(lc_got_replace((lc_got_object){.path = ""}, of_getppid, choose, CODE(made_up), &patch, 1) == 0);
    CHECK(patch.entry == NULL);
}

/* ---- a library, bound in each way -------------------------------------------------------- */

static void calls_are_replaced_and_pages_are_left_as_they_were(library *l, bool called_before, bool sealed)
{
    lc_got_patch patches[ROOM] = {0};
    char during[5], after[5];
    open_library(l);
    if (called_before) {
        CHECK(l->call() == 0);
    }
    const size_t count = hook(l, patches);
    CHECK(count >= 1);
    CHECK(l->call() == MADE_UP);
    CHECK(l->call() == MADE_UP); /* the linker has not bound it meanwhile */
    CHECK(l->call_by_data() == 0);
    CHECK(((int (*)(struct pollfd *, nfds_t, int))(uintptr_t)patches[0].original)(NULL, 0, 0) == 0);
    protection(patches[0].entry, during);
    void **entry = patches[0].entry;
    restore(patches, count);
    protection(entry, after);
    CHECK(during[1] == (sealed ? '-' : 'w') && strcmp(during, after) == 0);
    CHECK(l->call() == 0);
    dlclose(l->handle);
}

static void each_entry_of_a_symbol_is_replaced(library *l)
{
    const lc_got_call of_two = {.symbol = "ppoll", .fallback = CODE(ppoll)};
    lc_got_patch patches[ROOM] = {0};
    void *(*address_of_two)(void);
    int (*call_of_two)(void);
    open_library(l);
    *(void **)&address_of_two = dlsym(l->handle, "address_of_two");
    *(void **)&call_of_two = dlsym(l->handle, "call_of_two");
    const size_t count =
        lc_got_replace((lc_got_object){.path = l->file}, of_two, choose, CODE(made_up_own), patches, ROOM);
    CHECK(address_of_two() == CODE(made_up_own));
    CHECK(call_of_two() == MADE_UP);
    CHECK(l->call() == 0); /* of another function */
    restore(patches, count);
    CHECK(address_of_two() != CODE(made_up_own));
    CHECK(call_of_two() == 0);
    dlclose(l->handle);
}

static void functions_of_the_object_itself_are_left_alone_unless_asked_for(library *l)
{
    lc_got_patch patches[ROOM] = {0};
    lc_got_call of_own = {.symbol = "own"};
    open_library(l);
    CHECK(lc_got_replace((lc_got_object){.path = l->file}, of_own, choose, CODE(made_up_own), patches,
                         ROOM) == 0);
    CHECK(l->call_own() == 1);
    of_own.own_too = true;
    const size_t count =
        lc_got_replace((lc_got_object){.path = l->file}, of_own, choose, CODE(made_up_own), patches, ROOM);
    CHECK(count >= 1);
    CHECK(l->call_own() == MADE_UP);
    CHECK(patches[0].original == dlsym(l->handle, "own"));
    restore(patches, count);
    CHECK(l->call_own() == 1);
    dlclose(l->handle);
}

#ifdef __GLIBC__ /* musl binds all at once, and unloads nothing */
static void what_is_not_bound_is_left_alone_without_a_fallback(library *lazy)
{
    lc_got_patch patches[ROOM] = {0};
    const lc_got_call no_fallback = {.symbol = "poll"};
    const lc_got_object object = {.path = lazy->file};
    open_library(lazy);
    const size_t before = lc_got_replace(object, no_fallback, choose, CODE(made_up_poll), patches, ROOM);
    CHECK(lazy->call() == 0);
    restore(patches, before);
    CHECK(lazy->call() == 0); /* bound now */
    const size_t count = lc_got_replace(object, no_fallback, choose, CODE(made_up_poll), patches, ROOM);
    CHECK(count > before && lazy->call() == MADE_UP);
    restore(patches, count);
    dlclose(lazy->handle);
}

static void an_unloaded_library_is_not_touched_and_a_loaded_one_not_taken_for_it(library *l)
{
    lc_got_patch patches[ROOM] = {0};
    open_library(l);
    const size_t count = hook(l, patches);
    CHECK(count >= 1);
    dlclose(l->handle);
    for (size_t i = 0; i < count; i++) {
        CHECK(!lc_got_is_in_place(&patches[i]));
    }
    open_library(l); /* mostly where it was before */
    CHECK(l->call() == 0);
    restore(patches, count);
    CHECK(l->call() == 0);
    dlclose(l->handle);
}
#endif

int main(void)
{
    library lazy = LIBRARY("calls_lazy", RTLD_LAZY), unsealed = LIBRARY("calls_unsealed", RTLD_NOW),
            sealed = LIBRARY("calls_sealed", RTLD_NOW), partly = LIBRARY("calls_partly_sealed", RTLD_LAZY),
            no_plt = LIBRARY("calls_no_plt", RTLD_NOW);
    library *all[] = {&lazy, &unsealed, &sealed, &partly, &no_plt};

    run_tests();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const bool is_sealed = all[i] == &sealed || all[i] == &no_plt;
        calls_are_replaced_and_pages_are_left_as_they_were(all[i], false, is_sealed);
        calls_are_replaced_and_pages_are_left_as_they_were(all[i], true, is_sealed);
        each_entry_of_a_symbol_is_replaced(all[i]);
        functions_of_the_object_itself_are_left_alone_unless_asked_for(all[i]);
#ifdef __GLIBC__
        an_unloaded_library_is_not_touched_and_a_loaded_one_not_taken_for_it(all[i]);
#endif
    }
#ifdef __GLIBC__
    what_is_not_bound_is_left_alone_without_a_fallback(&lazy);
#endif
    return 0;
}
