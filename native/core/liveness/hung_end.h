/* The end of a process whose loop hangs, where that was asked for (the setting exit_when_hung). */
#ifndef LOOPCANARY_HUNG_END_H
#define LOOPCANARY_HUNG_END_H

#include <stdint.h>

/* Ends the process as a supervisor would, by SIGABRT: what the program has for it (faulthandler, a crash reporter) gets `patience_ns`, and a
 * core is made where that is allowed. One that goes on all the same, as its handler waits for the GIL or returns, is ended by the signal's
 * default action. Does not return. The watchdog's thread, which blocks all signals. */
_Noreturn void lc_end_hung_process(uint64_t patience_ns);

#endif
