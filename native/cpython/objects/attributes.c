/* An instance keeps the values only. Which of them an attribute is, its class's shared keys say: the value
 * of the key in place i is in place i (Objects/dictobject.c, "split-table dictionary"). */
#include "cpython/objects/attributes.h"

#include "cpython/walker/frame_values.h"

enum {
    SHARED_KEYS_MAX = 30,        /* SHARED_KEYS_MAX_SIZE, Include/internal/pycore_dict.h */
    TYPE_INLINE_VALUES = 1 << 2, /* Py_TPFLAGS_*, Include/object.h */
    TYPE_MANAGED_DICT = 1 << 4,
    TYPE_HEAP = 1 << 9
};

enum { NAMES_MAX = 16384 }; /* modules of a program, names of a module */

typedef struct {
    uint64_t key, value; /* of shared keys the value is in the instance */
} shared_entry;

static uint64_t shared_keys(const lc_cpython_source *source, uint64_t type)
{
    const lc_layout *l = &source->layout;
    const uint64_t wanted =
        TYPE_HEAP | (l->values_before != LC_ABSENT ? TYPE_MANAGED_DICT : TYPE_INLINE_VALUES);
    const bool has = type != 0 && (lc_word_at(source, type + l->type_flags) & wanted) == wanted;
    return has ? lc_word_at(source, type + l->type_shared_keys) : 0;
}

static uint64_t values_of(const lc_cpython_source *source, uint64_t instance, uint64_t type, uint32_t *room)
{
    const lc_layout *l = &source->layout;
    if (l->values_before != LC_ABSENT) {
        const uint64_t values = lc_word_at(source, instance - l->values_before);
        *room = SHARED_KEYS_MAX; /* each class's instances have room for all of its keys */
        return values == 0 ? 0 : values + l->values_tag;
    }
    const uint64_t values = instance + lc_word_at(source, type + l->type_basic_size);
    /* struct _dictvalues: capacity, size, embedded, valid */
    const uint64_t head = lc_word_at(source, values);
    *room = (head >> 24 & 0xFFu) != 0 ? (uint32_t)(head & 0xFFu) : 0;
    return values;
}

uint64_t lc_attribute(lc_cpython_source *source, uint64_t instance, const char *name)
{
    uint64_t used = 0;
    uint32_t room = 0;
    const uint64_t type = lc_type_at(source, instance);
    const uint64_t entries =
        lc_dict_entries(source, shared_keys(source, type), LC_DICT_SPLIT, SHARED_KEYS_MAX, &used);
    const uint64_t values = entries == 0 ? 0 : values_of(source, instance, type, &room);
    for (uint32_t i = 0; i < used && i < room && values != 0; i++) {
        if (lc_str_is(source, lc_word_at(source, entries + i * sizeof(shared_entry)), name)) {
            return lc_word_at(source, values + source->layout.values_first + 8u * (uint64_t)i);
        }
    }
    return 0;
}

uint64_t lc_named_value(const lc_cpython_source *source, uint64_t dict, const char *name)
{
    uint64_t used = 0, skipped = 0;
    const uint64_t keys = dict == 0 ? 0 : lc_word_at(source, dict + LC_DICT_KEYS);
    uint64_t at = lc_dict_entries(source, keys, LC_DICT_NAMES, NAMES_MAX, &used);
    if (at ==
        0) { /* one key that is no string makes it a dict like any other, whose entries begin with a hash */
        at = lc_dict_entries(source, keys, LC_DICT_GENERAL, NAMES_MAX, &used);
        skipped = 8;
    }
    for (uint64_t i = 0; i < used && at != 0; i++) {
        shared_entry entry;
        if (lc_read(source->reader, at + i * (skipped + sizeof entry) + skipped, &entry, sizeof entry) &&
            entry.value != 0 && lc_str_is(source, entry.key, name)) {
            return entry.value;
        }
    }
    return 0;
}
