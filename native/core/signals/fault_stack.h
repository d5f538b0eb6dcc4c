/* Alternate stacks for the handlers of faults: where a thread's stack has run over, the kernel can call them
 * on another one only.
 *
 * A thread that has one already, as faulthandler's, keeps that; one that it sets later takes the place of
 * ours. Ours stays until the thread ends, as others may have noted it to put it back. Threads that one object
 * starts (CPython) have theirs from the begin on; others, where they come here themselves.
 */
#pragma once

/* From now on; one for the calling thread, too. `caller`: an address in the object whose threads get one;
 * NULL: none. One caller at a time. */
void lc_fault_stacks_begin(const void *caller);
void lc_fault_stacks_end(void);

/* One for the calling thread, if they are given. Keeps errno; not in a handler. */
void lc_fault_stack_give(void);
