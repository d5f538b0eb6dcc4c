/* Names of the work that a loop runs. */
#ifndef LOOPCANARY_WORK_H
#define LOOPCANARY_WORK_H

#include "cpython_source.h"

/* lc_frame_source.work and .text. Watchdog's thread; no GIL, lock, allocation. */
void lc_work(lc_cpython_source *source, uint64_t work, lc_work_names *out);
lc_text lc_text_of(lc_cpython_source *source, uint64_t str_object);

#endif
