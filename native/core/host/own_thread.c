#include "core/host/own_thread.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

#include "core/host/own_signals.h"

/* glibc takes static TLS, of which a process may have much, out of the stack. Asked once, by the first of our threads' makers: the linker's lock
 * may be held later for as long as a library's constructor runs. */
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

int lc_own_thread_start(void *(*run)(void *), void *argument)
{
    sigset_t before;
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, stack_bytes(&attributes));
    lc_own_signals_begin(&before);
    const int error = pthread_create(&thread, &attributes, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}
