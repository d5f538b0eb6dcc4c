/* How entries are stored to: with what a sandbox leaves, and beside others who patch and call
 * (core/got/got.h). */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/core/got/bound_library.h"

/* ---- the C library's calls that stores are made with -------------------------------------- */

static int opened_maps, opened_memory, unsealed;
static bool has_no_memory, is_resealed;

/* In the C library's place. */
int open(const char *path, int flags, ...)
{
    opened_maps += strcmp(path, "/proc/self/maps") == 0;
    opened_memory += strcmp(path, "/proc/self/mem") == 0;
    if (has_no_memory && strcmp(path, "/proc/self/mem") == 0) {
        errno = EACCES;
        return -1;
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0);
}

/* Likewise; another patcher may seal the page again, at the worst moment. */
int mprotect(void *page, size_t bytes, int protection)
{
    const long result = syscall(SYS_mprotect, page, bytes, protection);
    unsealed += (protection & PROT_WRITE) != 0;
    if (is_resealed) {
        syscall(SYS_mprotect, page, bytes, PROT_READ);
    }
    return (int)result;
}

/* ---- what does not work ------------------------------------------------------------------ */

static void in_a_child(void (*body)(library *), library *l)
{
    int status = 0;
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        opened_maps = opened_memory = unsealed = 0;
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
    const size_t count = hook(sealed, patches);
    CHECK(count >= 1 && sealed->call() == MADE_UP);
    restore(patches, count);
    CHECK(sealed->call() == 0);
}

static void without_memory_and_mprotect(library *sealed)
{
    lc_got_patch patches[ROOM] = {0};
    has_no_memory = true;
    open_library(sealed);
    let_no_page_change();
    CHECK(hook(sealed, patches) == 0);
    CHECK(sealed->call() == 0);
}

static void without_memory_and_mprotect_afterwards(library *sealed)
{
    lc_got_patch patches[ROOM] = {0};
    open_library(sealed);
    CHECK(hook(sealed, patches) >= 1);
    has_no_memory = true;
    let_no_page_change();
    CHECK(!lc_got_restore(&patches[0])); /* and it is known as ours still */
    CHECK(lc_got_is_in_place(&patches[0]));
    CHECK(sealed->call() == MADE_UP);
}

/* ---- beside others who patch ------------------------------------------------------------- */

static void a_page_that_is_sealed_meanwhile_is_stored_to(library *sealed)
{
    lc_got_patch patches[ROOM] = {0};
    open_library(sealed);
    is_resealed = true;
    const size_t count = hook(sealed, patches);
    CHECK(count >= 1 && sealed->call() == MADE_UP);
    restore(patches, count);
    CHECK(sealed->call() == 0);
}

static void a_page_that_cannot_be_kept_unsealed_is_left_alone(library *sealed)
{
    lc_got_patch patches[ROOM] = {0};
    open_library(sealed);
    has_no_memory = is_resealed = true;
    CHECK(hook(sealed, patches) == 0);
    CHECK(sealed->call() == 0);
    is_resealed = false;
    const size_t count = hook(sealed, patches);
    CHECK(count >= 1 && sealed->call() == MADE_UP);
    is_resealed = true;
    CHECK(!lc_got_restore(&patches[0]));
    CHECK(sealed->call() == MADE_UP);
}

static void no_page_is_unsealed_where_memory_can_be_written(library *l)
{
    lc_got_patch patches[ROOM] = {0};
    open_library(l);
    restore(patches, hook(l, patches));
    CHECK(unsealed == 0 && opened_maps == 0 && opened_memory >= 2);
}

static void all_entries_need_one_look_at_the_mappings(library *l)
{
    const lc_got_call of_two = {.symbol = "ppoll", .fallback = CODE(ppoll)};
    const lc_got_object object = {.path = l->file};
    lc_got_patch patches[ROOM] = {0};
    open_library(l);
    has_no_memory = true;
    CHECK(lc_got_replace(object, of_two, choose, CODE(made_up_own), patches, ROOM) >= 1);
    CHECK(opened_maps == 1);
    CHECK(lc_got_replace(object, of_two, choose, CODE(made_up_own), patches, ROOM) == 0);
    CHECK(opened_maps == 1); /* nothing is to be stored: nobody looks */
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
    atomic_store(&over, false);
    atomic_store(&calls, 0);
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

static void either_way_stores_and_leaves_the_page_as_it_was(library *l)
{
    char may[2][5];
    for (int way = 0; way < 2; way++) {
        lc_got_patch patches[ROOM] = {0};
        has_no_memory = way == 1;
        open_library(l);
        const size_t count = hook(l, patches);
        CHECK(count >= 1 && l->call() == MADE_UP);
        protection(patches[0].entry, may[way]);
        restore(patches, count);
        CHECK(l->call() == 0);
        dlclose(l->handle);
    }
    CHECK(opened_maps >= 2 && strcmp(may[0], may[1]) == 0);
}

int main(void)
{
    library lazy = LIBRARY("calls_lazy", RTLD_LAZY), unsealed = LIBRARY("calls_unsealed", RTLD_NOW),
            sealed = LIBRARY("calls_sealed", RTLD_NOW), partly = LIBRARY("calls_partly_sealed", RTLD_LAZY),
            no_plt = LIBRARY("calls_no_plt", RTLD_NOW);
    library *all[] = {&lazy, &unsealed, &sealed, &partly, &no_plt};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        in_a_child(without_descriptors, all[i]);
        in_a_child(either_way_stores_and_leaves_the_page_as_it_was, all[i]);
        in_a_child(no_page_is_unsealed_where_memory_can_be_written, all[i]);
        in_a_child(all_entries_need_one_look_at_the_mappings, all[i]);
    }
    in_a_child(without_mprotect, &sealed);
    in_a_child(without_memory_and_mprotect, &sealed);
    in_a_child(without_memory_and_mprotect_afterwards, &sealed);
    in_a_child(a_page_that_is_sealed_meanwhile_is_stored_to, &sealed);
    in_a_child(a_page_that_cannot_be_kept_unsealed_is_left_alone, &sealed);
    threads_call_through_while_it_changes(&sealed);
    has_no_memory = true;
    threads_call_through_while_it_changes(&sealed);
    return 0;
}
