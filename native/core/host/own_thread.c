#include "core/host/own_thread.h"

#include <dlfcn.h>
#include <linux/capability.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/host/kept_file.h"

/* glibc takes static TLS out of the stack, and a process may have much of it. Asked once, before our first
 * thread: later a library's constructor may hold the linker's lock for as long as it runs. */
static size_t stack_bytes(const pthread_attr_t *attributes)
{
    static _Atomic size_t known;
    size_t bytes = atomic_load(&known);
    if (bytes == 0) {
        size_t (*taken)(const pthread_attr_t *);
        *(void **)&taken = dlsym(RTLD_DEFAULT, "__pthread_get_minstack");
        bytes = 256u * 1024u + (taken == NULL ? 0u : taken(attributes));
        atomic_store(&known, bytes);
    }
    return bytes;
}

int lc_own_thread_start(void *(*run)(void *), void *argument, bool runs_python)
{
    sigset_t before;
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (!runs_python) {
        pthread_attr_setstacksize(&attributes, stack_bytes(&attributes));
    }
    lc_own_signals_begin(&before);
    const int error = pthread_create(&thread, &attributes, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}

typedef struct {
    uint64_t permitted, no_new_privs, seccomp, filters;
} rights;

static uint64_t number_at(const char *text, const char *label)
{
    const char *const at = strstr(text, label);
    return at == NULL ? 0u : strtoull(at + strlen(label), NULL, 16);
}

/* `path`: a thread's status, proc(5). The kernel escapes line breaks in the name; thousands of groups may
 * be listed. */
static bool read_rights(const char *path, rights *out)
{
    char text[16 * 1024];
    text[lc_read_unnoticed(path, text, sizeof text - 1u)] = '\0';
    *out = (rights){number_at(text, "\nCapPrm:\t"), number_at(text, "\nNoNewPrivs:\t"),
                    number_at(text, "\nSeccomp:\t"), number_at(text, "\nSeccomp_filters:\t")};
    return strstr(text, "\nCapPrm:\t") != NULL;
}

bool lc_own_thread_is_filtered(void)
{
    rights own;
    return !read_rights("/proc/thread-self/status", &own) || own.seccomp != 0;
}

/* Whether capset and prctl are safe: the thread has no more seccomp filters than at the first call (a
 * container's). A filter of the program's own may end the process for a call that it does not know. */
static bool may_call(const rights *own)
{
    static _Atomic uint64_t first; /* the number of filters then, plus one; 0: not known */
    uint64_t known = 0;
    const bool is_first = atomic_compare_exchange_strong(&first, &known, own->filters + 1u);
    /* the kernel shows their number from Linux 5.9 on */
    return (is_first || known == own->filters + 1u) && (own->seccomp == 0 || own->filters != 0);
}

bool lc_own_rights_follow(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
    rights mains, own;
    if (!read_rights("/proc/self/status", &mains) || !read_rights("/proc/thread-self/status", &own)) {
        return false;
    }
    const bool has_more = (own.permitted & ~mains.permitted) != 0,
               is_bound = own.no_new_privs || !(has_more || mains.no_new_privs);
    if (!may_call(&own)) {
        return !has_more && is_bound;
    }
    const bool follows = is_bound || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
    if (has_more && syscall(SYS_capget, &header, sets) == 0) {
        for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
            const uint32_t left = (uint32_t)(mains.permitted >> 32 * i);
            sets[i].permitted &= left;
            sets[i].effective &= left; /* the main thread's permitted ones, also where it has lowered them */
            sets[i].inheritable &= left;
        }
        return syscall(SYS_capset, &header, sets) == 0 && follows;
    }
    return !has_more && follows;
}
