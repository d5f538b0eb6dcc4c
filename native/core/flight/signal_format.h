/* Signals that came to the process, in the page of the flight file's header, LC_SIGNALS_OFFSET bytes from
 * its start: a part of version 2 of the format. Before, these bytes were 0. */
#pragma once

#include "core/flight/flight_format.h"

#define LC_SIGNALS_OFFSET 2048u
#define LC_SIGNALS_KEPT 8u
#define LC_COMMAND_BYTES 120u

#define LC_STACK_OVER 1u      /* it came where the thread's stack ends */
#define LC_STACK_ALTERNATE 2u /* it came in a handler on an alternate stack, as a crash reporter's are */

typedef struct {
    lc_word sequence; /* 1-based, written last; entry i holds sequences i+1, i+1+LC_SIGNALS_KEPT, ... */
    lc_word number;
    lc_word code; /* si_code, in two's complement; 0, -1 and -6: a process sent it */
    lc_word pid;  /* of the sender; 0: it is in no namespace that this process sees */
    lc_word uid;
    lc_word at_ns; /* monotonic */
    lc_word ends;  /* 1: the program has no handler for it */
    lc_word tid;   /* of the thread that took it; 0: not told */
    /* of the sender, if it lived still: words with blanks between them, or its name; NUL-padded */
    char command[LC_COMMAND_BYTES];
    /* of a fault, bits: LC_STACK_OVER, LC_STACK_ALTERNATE. Before, the last bytes of `command` */
    lc_word stack;
} lc_signal_entry;

typedef struct {
    lc_word seen; /* how many came */
    /* up to which sequence the sender was looked for: later entries have no command yet, whatever is in it */
    lc_word named;
    lc_word reserved[6];
    lc_signal_entry kept[LC_SIGNALS_KEPT];
} lc_signals;

_Static_assert(sizeof(lc_signal_entry) == 192, "three cache lines");
_Static_assert(sizeof(lc_header) <= LC_SIGNALS_OFFSET, "the signals are behind the header");
_Static_assert(LC_SIGNALS_OFFSET + sizeof(lc_signals) <= LC_HEADER_BYTES,
               "the header's page has room for them");
