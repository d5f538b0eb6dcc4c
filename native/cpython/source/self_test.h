/* Whether what the source reads is what the interpreter says. */
#ifndef LOOPCANARY_SELF_TEST_H
#define LOOPCANARY_SELF_TEST_H

#include "cpython/source/cpython_source.h"

/* Walks the calling thread and reads objects of known value. GIL held. False, with a reason of static
 * lifetime, if anything differs from the public API's answer. */
bool lc_self_test(lc_cpython_source *source, const char **why_not);

/* Of it what needs objects of its own: functions, methods, generators, and the values of a frame. GIL held; runs a few lines
 * of Python. */
bool lc_values_agree(lc_cpython_source *source);

#endif
