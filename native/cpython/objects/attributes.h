/* Entries of dicts, and attributes of instances of Python classes. */
#pragma once

#include "cpython/objects/objects.h"

#define LC_DICT_INDEX_BITS_MAX 16u

/* Their head (Include/internal/pycore_dict.h), the same from 3.11 to 3.15; asserted in layout_check.c. */
typedef struct {
    uint64_t references;
    uint8_t bits;
    uint8_t index_bits; /* of the bytes of the index that follows */
    uint8_t kind;
    uint8_t padding[5];
    uint64_t usable;
    uint64_t used; /* entries, some of which may be gone */
} lc_dict_keys;

_Static_assert(offsetof(lc_dict_keys, index_bits) == LC_DICT_INDEX_BITS &&
                   offsetof(lc_dict_keys, kind) == LC_DICT_KIND &&
                   offsetof(lc_dict_keys, used) == LC_DICT_USED && sizeof(lc_dict_keys) == LC_DICT_INDEX,
               "as layout.h says");

/* The address of the first entry; 0: there are no keys of this kind here, or more than `most`. */
static inline uint64_t lc_dict_entries(const lc_cpython_source *source, uint64_t table, uint8_t kind,
                                       uint64_t most, uint64_t *used)
{
    lc_dict_keys keys;
    if (table == 0 || table % 8 != 0 || !lc_read(source->reader, table, &keys, sizeof keys) ||
        keys.kind != kind || keys.index_bits > LC_DICT_INDEX_BITS_MAX || keys.used > most) {
        return 0;
    }
    *used = keys.used;
    return table + sizeof keys + (UINT64_C(1) << keys.index_bits);
}

/* The address of the attribute's value in the instance; 0: there is none, or it is in a slot of a class with
 * __slots__. Any thread that may use the source; no GIL. */
uint64_t lc_attribute(lc_cpython_source *source, uint64_t instance, const char *name);

/* The value of a name in a dict of names, as sys.modules and the names of a module are; 0: it has none. */
uint64_t lc_named_value(const lc_cpython_source *source, uint64_t dict, const char *name);
