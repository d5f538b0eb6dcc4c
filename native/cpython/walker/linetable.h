/* Positions of instructions: the location table of PEP 626 and 657 (co_linetable), 3.11 and later.
 * Format: CPython, Objects/locations.md (3.11-3.13), InternalDocs/code_objects.md (3.14+).
 * Pure functions of bytes; no byte is trusted. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint32_t line;       /* 0: the instruction belongs to no line */
    uint32_t end_line;   /* 0 unknown */
    uint16_t column;     /* UTF-8 bytes from 1, 0 unknown */
    uint16_t end_column; /* one past the last, from 1, 0 unknown */
} lc_position;

/* Position of the code unit with index `unit` (a unit is two bytes of bytecode). False, and zeros, if
 * the table ends before it or is malformed. Takes time linear in `bytes`. */
bool lc_linetable_find(const uint8_t *table, size_t bytes, uint32_t first_line, uint64_t unit,
                       lc_position *out);
