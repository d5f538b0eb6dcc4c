/* Objects that are read as values: str, bytes, small int. Each is proven by its type before use. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cpython/source/cpython_source.h"
#include "core/flight/flight_format.h"
#include "cpython/walker/snapshot.h"

/* Longest header and LC_STRING_MAX characters of the widest kind. */
#define LC_STR_BYTES_MAX (72u + 4u * LC_STRING_MAX)
#define LC_BYTES_MAX (256u * 1024u)

/* What tells one immutable object's value from another's: a hash of the parts of the object that
 * depend on its value only (reference count, cached hash and interning state do not). */
typedef struct {
    uint32_t bytes; /* of the object, that were hashed over */
    uint64_t hash;  /* 0: no object of the type */
} lc_value_print;

typedef struct {
    char *bytes; /* LC_STRING_MAX of room */
    uint32_t length;
    lc_value_print print;
} lc_str_value;

/* The word at an address, 0 where there is none; the type of an object likewise. */
static inline uint64_t lc_word_at(const lc_cpython_source *source, uint64_t address)
{
    uint64_t value = 0;
    return address != 0 && address % 8 == 0 && lc_read(source->reader, address, &value, sizeof value) ? value
                                                                                                      : 0;
}

static inline uint64_t lc_type_at(const lc_cpython_source *source, uint64_t object)
{
    return object == 0 ? 0 : lc_word_at(source, object + source->layout.object_type);
}

/* Reads a C string, which may end right before an unmapped page. Its length; 0: there is none, or no end
 * in `room` bytes. */
uint32_t lc_read_c_string(const lc_cpython_source *source, uint64_t address, char *into, uint32_t room);

/* Whether the C string at the address is this text, of at most 31 bytes. */
bool lc_c_string_is(const lc_cpython_source *source, uint64_t address, const char *text);

/* Reads the str at `address` as UTF-8. False if there is none. `scratch` has LC_STR_BYTES_MAX bytes. */
bool lc_read_str(const lc_cpython_source *source, uint64_t address, uint8_t *scratch, lc_str_value *value);

/* Reads the bytes object at `address`: up to `room` bytes into `into`. False if there is none or it is
 * longer. */
bool lc_read_bytes(const lc_cpython_source *source, uint64_t address, uint8_t *into, uint32_t room,
                   uint32_t *length);

/* Reads a non-negative int below 2^60. */
bool lc_read_int(const lc_cpython_source *source, uint64_t address, uint64_t *value);

/* The print of the str or bytes object whose first `bytes` bytes are given. */
lc_value_print lc_print_of_str(const lc_cpython_source *source, const uint8_t *object, uint32_t bytes);
lc_value_print lc_print_of_bytes(const lc_cpython_source *source, const uint8_t *object, uint32_t bytes);

static inline uint64_t lc_mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 29;
}
