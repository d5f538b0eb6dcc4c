/* What a descriptor of this process is. See wait_target.h for what may be asked. */
#ifndef LOOPCANARY_DESCRIPTOR_TARGET_H
#define LOOPCANARY_DESCRIPTOR_TARGET_H

#include "core/waits/wait_target.h"

void lc_descriptor_target(uint64_t fd, lc_target *out);

/* "/proc/<owner>/fd/<fd>" read as a link. Length, 0 unknown. `owner`: 0 this process. */
uint32_t lc_descriptor_link(uint32_t owner, uint64_t fd, char *text, uint32_t room);

#endif
