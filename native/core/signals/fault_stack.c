#include "core/signals/disposition.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/got/got.h"
#include "core/host/process_facts.h"
#include "core/patches/patches.h"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51 /* Linux 5.14; what a signal's frame needs, which vector registers make large */
#endif

/* Ours, a crash reporter's, and any handler's that asks for such a stack and had none before. Only pages
 * that are touched take memory. */
enum { ROOM = 512 * 1024, GUARD = 64 * 1024, PATCHES = 4 };

typedef struct {
    void *(*routine)(void *);
    void *argument;
} start;

/* By address, as in disposition.c: this object's own calls are not led back here. */
static int (*const volatile create)(pthread_t *, const pthread_attr_t *, void *(*)(void *),
                                    void *) = pthread_create;

static _Atomic bool are_given;
static lc_got_patch patches[PATCHES];
static pthread_key_t stacks; /* of each thread its own: the mapping */
static bool has_key;

/* The lowest part is a guard, and in what the kernel is told: a handler that has run into it is on this
 * stack still, and ends the process. Were it not, the kernel would call the handler at the stack's top
 * again, for ever. */
static size_t mapping_bytes(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE),
                 wanted = GUARD + ROOM + (size_t)getauxval(AT_MINSIGSTKSZ);
    return (wanted + page - 1u) / page * page;
}

static void take_back(void *mapping)
{
    const stack_t none = {.ss_flags = SS_DISABLE};
    stack_t now;
    const bool is_ours = sigaltstack(NULL, &now) == 0 && now.ss_sp == mapping;
    if (!is_ours || sigaltstack(&none, NULL) == 0) { /* else it ends in a handler that runs on it */
        munmap(mapping, mapping_bytes());
    }
}

static void give(void)
{
    const size_t bytes = mapping_bytes();
    stack_t now;
    if (sigaltstack(NULL, &now) != 0 || !(now.ss_flags & SS_DISABLE) || bytes > lc_spare_addresses()) {
        return;
    }
    char *mapping = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (mapping == MAP_FAILED) {
        return;
    }
    const stack_t ours = {.ss_sp = mapping, .ss_size = bytes};
    if (mprotect(mapping, GUARD, PROT_NONE) != 0 || pthread_setspecific(stacks, mapping) != 0) {
        munmap(mapping, bytes);
    } else if (sigaltstack(&ours, NULL) != 0) {
        (void)pthread_setspecific(stacks, NULL);
        munmap(mapping, bytes);
    }
}

void lc_fault_stack_give(void)
{
    const int error = errno;
    if (atomic_load_explicit(&are_given, memory_order_acquire)) {
        give();
    }
    errno = error;
}

static void *begin_thread(void *argument)
{
    const start begun = *(start *)argument;
    free(argument);
    lc_fault_stack_give();
    return begun.routine(begun.argument);
}

static int create_with_stack(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *),
                             void *argument)
{
    start *begun = malloc(sizeof *begun);
    if (begun == NULL) {
        return create(thread, attributes, routine, argument);
    }
    *begun = (start){routine, argument};
    const int error = create(thread, attributes, begin_thread, begun);
    if (error != 0) {
        free(begun);
    }
    return error;
}

void lc_fault_stacks_begin(const void *caller)
{
    if (!has_key) {
        has_key = pthread_key_create(&stacks, take_back) == 0;
        (void)lc_patch_note("+hook sigaltstack of threads that have none, until they end");
    }
    if (!has_key) {
        return;
    }
    atomic_store_explicit(&are_given, true, memory_order_release);
    lc_fault_stack_give();
    if (caller != NULL && patches[0].entry == NULL) {
        (void)lc_got_lead(caller, "pthread_create", (void *)(uintptr_t)create,
                          (void *)(uintptr_t)create_with_stack, patches, PATCHES);
    }
}

void lc_fault_stacks_end(void)
{
    atomic_store(&are_given, false);
    for (size_t i = 0; i < PATCHES; i++) {
        (void)lc_got_restore(&patches[i]);
    }
}
