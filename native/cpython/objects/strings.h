/* PEP 393 strings to UTF-8: pure functions of bytes. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Writes `count` characters of `kind` bytes each (1, 2 or 4) as UTF-8 into `out` and answers
 * how many bytes were written: at most `room`, cut on a character's edge. What has no UTF-8 becomes
 * U+FFFD: lone surrogates (undecodable file names, PEP 383) and numbers past U+10FFFF (broken
 * memory). Any other kind gives 0. `data` need not be aligned. */
size_t lc_utf8_from_pep393(const uint8_t *data, uint32_t kind, size_t count, char *out, size_t room);
