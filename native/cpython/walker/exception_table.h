/* A code object's exception table (Objects/exception_handling_notes.txt): which handler covers an instruction, and
 * how deep the value stack is under it. What lies below that depth is in use, whatever else the
 * frame's memory holds; that is how the open `with` blocks of a running frame can be told from closed ones. */
#ifndef LOOPCANARY_EXCEPTION_TABLE_H
#define LOOPCANARY_EXCEPTION_TABLE_H

#include <stdint.h>

#define LC_EXCEPTION_TABLE_MAX 4096u

/* Depth of the value stack that the innermost handler around code unit `unit` keeps; 0: no handler, or a table
 * that is none. Pure. */
uint32_t lc_exception_depth(const uint8_t *table, uint32_t bytes, uint32_t unit);

#endif
