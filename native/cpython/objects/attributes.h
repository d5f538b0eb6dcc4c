/* Attributes of instances of Python classes. */
#ifndef LOOPCANARY_ATTRIBUTES_H
#define LOOPCANARY_ATTRIBUTES_H

#include "cpython/source/cpython_source.h"

/* The address of the attribute's value in the instance; 0: there is none, or it is not where CPython keeps the first thirty
 * of an instance (a class with __slots__, a dict that was replaced). Any thread that may use the source; no GIL. */
uint64_t lc_attribute(lc_cpython_source *source, uint64_t instance, const char *name);

#endif
