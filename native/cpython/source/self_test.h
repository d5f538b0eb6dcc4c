/* Whether what the source reads is what the interpreter says. */
#pragma once

#include "cpython/source/cpython_source.h"

/* Walks the calling thread and reads objects of known value. GIL held; runs a few lines of Python. False, with a reason of static
 * lifetime, if anything differs from the public API's answer. */
bool lc_self_test(lc_cpython_source *source, const char **why_not);
