/* Threads of ours that nobody joins: detached, with the program's signals blocked. */
#ifndef LOOPCANARY_OWN_THREAD_H
#define LOOPCANARY_OWN_THREAD_H

/* Runs run(argument) on a new thread with a stack of 256 KiB beside what the C library takes. 0 or an errno. It allocates, and
 * needs neither the GIL nor a lock of ours. */
int lc_own_thread_start(void *(*run)(void *), void *argument);

#endif
