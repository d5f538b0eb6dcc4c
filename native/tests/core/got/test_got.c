/* Entries of tables of imported functions, replaced and put back: of this very program, and of a library in each
 * way that a linker can bind it (relocations/calls.c). */
#include "core/got/got.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/check.h"

enum { MADE_UP = 4711, ANOTHER_S = 4712, ROOM = 8 };

#define CODE(function) ((void *)(uintptr_t)(function))

static void *choose(void *context, void *original)
{
    (void)original;
    return context;
}

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
    CHECK(((pid_t(*)(void))(uintptr_t)patch.original)() == truth);
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
    CHECK(lc_got_replace((lc_got_object){.address = &local}, of_getppid, choose, CODE(made_up), &patch, 1) == 0);
    CHECK(lc_got_replace((lc_got_object){.path = "no-such-library.so"}, of_getppid, choose, CODE(made_up), &patch,
                         1) == 0);
    CHECK(lc_got_replace((lc_got_object){.path = ""}, of_getppid, choose, CODE(made_up), &patch, 1) == 0);
    CHECK(patch.entry == NULL);
}

/* ---- a library, bound in each way -------------------------------------------------------- */

typedef struct {
    const char *path;
    int flags;
    const char *file; /* the end of the path */
    void *handle;
    int (*call)(void);
    int (*call_by_data)(void);
    int (*call_own)(void);
} library;

static int made_up_poll(struct pollfd *descriptors, nfds_t count, int timeout)
{
    (void)descriptors;
    (void)count;
    (void)timeout;
    return MADE_UP;
}

static int made_up_own(void) { return MADE_UP; }

static const lc_got_call of_poll = {.symbol = "poll", .fallback = (void *)(uintptr_t)poll};

static void open_library(library *l)
{
    l->handle = dlopen(l->path, l->flags | RTLD_LOCAL);
    if (l->handle == NULL) {
        fprintf(stderr, "%s\n", dlerror());
    }
    CHECK(l->handle != NULL);
    *(void **)&l->call = dlsym(l->handle, "call");
    *(void **)&l->call_by_data = dlsym(l->handle, "call_by_data");
    *(void **)&l->call_own = dlsym(l->handle, "call_own");
    CHECK(l->call != NULL && l->call_by_data != NULL && l->call_own != NULL);
}

static size_t hook(const library *l, lc_got_patch *patches)
{
    return lc_got_replace((lc_got_object){.path = l->file}, of_poll, choose, CODE(made_up_poll), patches, ROOM);
}

static void restore(lc_got_patch *patches, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        CHECK(lc_got_restore(&patches[i]));
    }
}

/* Of the mapping that holds the address: "r--p" and the like. */
static void protection(const void *address, char may[5])
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[4096];
    unsigned long begin, end;
    CHECK(maps != NULL);
    memset(may, 0, 5);
    while (fgets(line, sizeof line, maps) != NULL && may[0] == '\0') {
        char found[5];
        if (sscanf(line, "%lx-%lx %4s", &begin, &end, found) == 3 && (unsigned long)address >= begin &&
            (unsigned long)address < end) {
            memcpy(may, found, 5);
        }
    }
    fclose(maps);
    CHECK(may[0] == 'r');
}

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
    CHECK(lc_got_replace((lc_got_object){.path = l->file}, of_own, choose, CODE(made_up_own), patches, ROOM) == 0);
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

/* ---- what does not work ------------------------------------------------------------------ */

static void in_a_child(void (*body)(library *), library *l)
{
    int status = 0;
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        body(l);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void without_descriptors(library *l)
{
    lc_got_patch patches[ROOM] = {0};
    const struct rlimit none = {0, 0};
    open_library(l);
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    CHECK(hook(l, patches) == 0); /* what the page may is not known */
    CHECK(l->call() == 0);
}

static void let_no_page_change(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_mprotect, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        printf("pages that refuse to change: skipped, no seccomp here\n");
        _exit(0);
    }
}

static void without_mprotect(library *sealed)
{
    lc_got_patch patches[ROOM] = {0};
    open_library(sealed);
    let_no_page_change();
    CHECK(hook(sealed, patches) == 0);
    CHECK(sealed->call() == 0);
}

static void without_mprotect_afterwards(library *sealed)
{
    lc_got_patch patches[ROOM] = {0};
    open_library(sealed);
    CHECK(hook(sealed, patches) >= 1);
    let_no_page_change();
    CHECK(!lc_got_restore(&patches[0])); /* and it is known as ours still */
    CHECK(lc_got_is_in_place(&patches[0]));
    CHECK(sealed->call() == MADE_UP);
}

/* ---- beside threads that call ------------------------------------------------------------ */

static atomic_bool over;
static atomic_int calls;

static void *keep_calling(void *library_of_it)
{
    const library *l = library_of_it;
    while (!atomic_load(&over)) {
        const int result = l->call();
        CHECK(result == 0 || result == MADE_UP);
        atomic_fetch_add(&calls, 1);
    }
    return NULL;
}

static void threads_call_through_while_it_changes(library *l)
{
    lc_got_patch patches[ROOM] = {0};
    pthread_t threads[2];
    open_library(l);
    CHECK(l->call() == 0);
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_create(&threads[i], NULL, keep_calling, l) == 0);
    }
    for (int i = 0; i < 200 || atomic_load(&calls) < 100; i++) {
        restore(patches, hook(l, patches));
    }
    atomic_store(&over, true);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK(l->call() == 0);
    dlclose(l->handle);
}

#define LIBRARY(name, flags) {GOT_LIBRARIES "/" name ".so", flags, name ".so", NULL, NULL, NULL, NULL}

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
        an_unloaded_library_is_not_touched_and_a_loaded_one_not_taken_for_it(all[i]);
        in_a_child(without_descriptors, all[i]);
    }
    what_is_not_bound_is_left_alone_without_a_fallback(&lazy);
    in_a_child(without_mprotect, &sealed);
    in_a_child(without_mprotect_afterwards, &sealed);
    threads_call_through_while_it_changes(&sealed);
    return 0;
}
