/* The first word of a hang, without the GIL. The keeper may be late, and the program's drain needs the
 * GIL, which the hang may hold. */
#pragma once

#include "core/flight/flight_format.h"

enum { LC_FIRST_WORD_BYTES = 2048 };

/* Writes `[loopcanary] blocked for 1.0 s in FILE:LINE, FUNCTION` and a line break, by the slot's last
 * sample with a stack: of the innermost frame whose file lies in none of the library's folders, else of
 * the innermost. Without such a sample it ends after the time. Returns how many bytes it has. `folders`:
 * absolute paths, up to a NULL: first the program's own, to which FILE is relative, then the library's.
 * `text` has LC_FIRST_WORD_BYTES. The watchdog's thread: it wrote the slot. */
size_t lc_first_word(const lc_slot *slot, uint64_t busy_ns, char *const folders[], char *text);
