/* An instance keeps the values only. Which of them an attribute is, its class's shared keys say: the value
 * of the key in place i is in place i (Objects/dictobject.c, "split-table dictionary"). */
#include "cpython/objects/attributes.h"

#include "cpython/walker/frame_values.h"

enum {
    SHARED_KEYS_MAX = 30,        /* SHARED_KEYS_MAX_SIZE, Include/internal/pycore_dict.h */
    DICT_BEFORE = 24,            /* MANAGED_DICT_OFFSET, Include/internal/pycore_object.h */
    DICT_VALUES = 40,            /* PyDictObject.ma_values */
    TYPE_INLINE_VALUES = 1 << 2, /* Py_TPFLAGS_*, Include/object.h */
    TYPE_MANAGED_DICT = 1 << 4,
    TYPE_HEAP = 1 << 9
};

enum {
    NAMES_MAX = 16384,   /* modules of a program, names of a module */
    ATTRIBUTES_MAX = 256 /* of one instance: the watchdog looks for them, too */
};

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

/* How many values there is room for. Up to 3.12 each class's instances have room for all of its keys; later
 * struct _dictvalues begins with it, and others' memory follows. */
static uint32_t capacity(const lc_cpython_source *source, uint64_t values)
{
    return source->layout.values_before != LC_ABSENT ? SHARED_KEYS_MAX : lc_word_at(source, values) & 0xFFu;
}

static uint64_t values_of(const lc_cpython_source *source, uint64_t instance, uint64_t type, uint32_t *room)
{
    const lc_layout *l = &source->layout;
    if (l->values_before != LC_ABSENT) {
        const uint64_t values = lc_word_at(source, instance - l->values_before);
        *room = capacity(source, values);
        return values == 0 ? 0 : values + l->values_tag;
    }
    const uint64_t values = instance + lc_word_at(source, type + l->type_basic_size);
    /* struct _dictvalues: capacity, size, embedded, valid */
    *room = (lc_word_at(source, values) >> 24 & 0xFFu) != 0 ? capacity(source, values) : 0;
    return values;
}

static uint64_t named(const lc_cpython_source *source, uint64_t dict, const char *name, uint64_t most)
{
    uint64_t used = 0, skipped = 0;
    const uint64_t keys = dict == 0 ? 0 : lc_word_at(source, dict + LC_DICT_KEYS);
    uint64_t at = lc_dict_entries(source, keys, LC_DICT_NAMES, most, &used);
    if (at ==
        0) { /* one key that is no string makes it a dict like any other, whose entries begin with a hash */
        at = lc_dict_entries(source, keys, LC_DICT_GENERAL, most, &used);
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

/* Among values that belong to shared keys, the one of this name; `room`: how many there can be. */
static uint64_t shared_value(const lc_cpython_source *source, uint64_t keys, uint64_t values, uint32_t room,
                             const char *name)
{
    uint64_t used = 0;
    const uint64_t entries = lc_dict_entries(source, keys, LC_DICT_SPLIT, SHARED_KEYS_MAX, &used);
    for (uint32_t i = 0; i < used && i < room && entries != 0 && values != 0; i++) {
        if (lc_str_is(source, lc_word_at(source, entries + i * sizeof(shared_entry)), name)) {
            return lc_word_at(source, values + source->layout.values_first + 8u * (uint64_t)i);
        }
    }
    return 0;
}

/* The dict that an instance has instead, once it was asked for, or from 3.13 on where a base has slots. */
static uint64_t in_dict(const lc_cpython_source *source, uint64_t instance, uint64_t type, const char *name)
{
    const bool has_one = (lc_word_at(source, type + source->layout.type_flags) & TYPE_MANAGED_DICT) != 0;
    const uint64_t dict = has_one ? lc_word_at(source, instance - DICT_BEFORE) : 0;
    if (dict == 0 || lc_type_at(source, dict) != source->at.dict_type) {
        return 0;
    }
    const uint64_t values = lc_word_at(source, dict + DICT_VALUES);
    return values == 0 ? named(source, dict, name, ATTRIBUTES_MAX)
                       : shared_value(source, lc_word_at(source, dict + LC_DICT_KEYS), values,
                                      capacity(source, values), name);
}

uint64_t lc_attribute(lc_cpython_source *source, uint64_t instance, const char *name)
{
    uint32_t room = 0;
    const uint64_t type = lc_type_at(source, instance);
    const uint64_t keys = shared_keys(source, type);
    const uint64_t values = keys == 0 ? 0 : values_of(source, instance, type, &room);
    const uint64_t found = shared_value(source, keys, values, room, name);
    return found != 0 || type == 0 ? found : in_dict(source, instance, type, name);
}

uint64_t lc_named_value(const lc_cpython_source *source, uint64_t dict, const char *name)
{
    return named(source, dict, name, NAMES_MAX);
}
