/* Room on the device of a file. */
#ifndef LOOPCANARY_SET_ASIDE_H
#define LOOPCANARY_SET_ASIDE_H

#include <stdint.h>

/* Sets the blocks of a part of a new file aside, which grows to that size: a store to a mapping of it later raises no SIGBUS.
 * 0, or an errno (ENOSPC). Any thread. */
int lc_set_aside(int fd, uint64_t offset, uint64_t bytes);

#endif
