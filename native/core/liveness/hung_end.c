#include "core/liveness/hung_end.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "core/clock/clock.h"
#include "core/watchdog/futex.h"

enum { ABORTED = 128 + SIGABRT };

_Noreturn void lc_end_hung_process(uint64_t patience_ns)
{
    lc_bell never = 0;
    sigset_t aborts;
    (void)kill(getpid(), SIGABRT); /* a thread of the program's takes it */
    lc_bell_wait(&never, 0, lc_now_ns() + patience_ns);
    (void)signal(SIGABRT, SIG_DFL);
    sigemptyset(&aborts);
    sigaddset(&aborts, SIGABRT);
    (void)pthread_sigmask(SIG_UNBLOCK, &aborts, NULL);
    (void)raise(SIGABRT);
    _exit(ABORTED);
}
