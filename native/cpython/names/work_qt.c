/* Names of Qt's events from memory: receiver -> virtual table -> type_info -> name, as the Itanium C++ ABI lays them out; where
 * the receiver is a Python object, that one's class. Nothing of the bindings is called: each of their words is read as others'
 * memory is, and an object counts where it leads back to the receiver, or is what the bindings' map has for it. */
#include "cpython/names/work_qt.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "cpython/objects/objects.h"

#define TYPE_NAME_MAX 128u
#define QOBJECT_BYTES 16u     /* the table's address, and the private part's */
#define QT_CLASS_BYTES_MAX 56u
#define METATYPES_MAX 4u
#define BUCKET_NODES_MAX 16u

static uint32_t read_name(const lc_cpython_source *source, uint64_t address, char *into)
{
    return lc_read_c_string(source, address, into, TYPE_NAME_MAX);
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_of_a_name(char c)
{
    return is_digit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Length and place of the next "<length><name>"; false: there is none. */
static bool next_part(const char *name, uint32_t bytes, uint32_t *at, uint32_t *begin, uint32_t *length)
{
    uint32_t value = 0;
    uint32_t i = *at;
    while (i < bytes && is_digit(name[i]) && value < TYPE_NAME_MAX) {
        value = 10u * value + (uint32_t)(name[i++] - '0');
    }
    if (i == *at || value == 0 || value > bytes - i) {
        return false;
    }
    for (uint32_t k = i; k < i + value; k++) {
        if (!is_of_a_name(name[k])) {
            return false;
        }
    }
    *begin = i;
    *length = value;
    *at = i + value;
    return true;
}

uint32_t lc_qt_class_name(const char *name, uint32_t bytes, const char **begin)
{
    uint32_t at = bytes > 0 && name[0] == '*'; /* the mark of a type that one library has for itself */
    const bool nested = at < bytes && name[at] == 'N';
    uint32_t from = 0, length = 0;
    at += nested;
    if (!next_part(name, bytes, &at, &from, &length)) {
        return 0;
    }
    while (nested && next_part(name, bytes, &at, &from, &length)) {
        /* the last one is the class */
    }
    static const char element[] = "QQmlElement"; /* what QML makes of a class: QQmlPrivate::QQmlElement<class> */
    if (nested && length == sizeof element - 1u && memcmp(name + from, element, length) == 0 && at < bytes &&
        name[at] == 'I') {
        const uint32_t inner = lc_qt_class_name(name + at + 1u, bytes - at - 1u, begin);
        if (inner > 0) {
            return inner;
        }
    }
    static const char suffix[] = "Wrapper"; /* shiboken's */
    static const char prefix[] = "sipQ";
    const uint32_t suffix_bytes = sizeof suffix - 1u;
    if (length > suffix_bytes && memcmp(name + from + length - suffix_bytes, suffix, suffix_bytes) == 0) {
        length -= suffix_bytes;
    } else if (length > sizeof prefix - 1u && memcmp(name + from, prefix, sizeof prefix - 1u) == 0) {
        from += 3u;
        length -= 3u;
    }
    *begin = name + from;
    return length;
}

/* ---- classes of Python ------------------------------------------------------------------- */

static _Atomic uint64_t wrappers; /* 0: unknown */

void lc_qt_use_wrappers(uint64_t manager) { atomic_store_explicit(&wrappers, manager, memory_order_relaxed); }

/* A type's type's type ... is `type`, which is its own. */
static bool is_python_object(const lc_cpython_source *source, uint64_t object)
{
    uint64_t type = lc_type_at(source, object);
    for (uint32_t i = 0; i < METATYPES_MAX && type != 0; i++) {
        const uint64_t next = lc_type_at(source, type);
        if (next == type) {
            return true;
        }
        type = next;
    }
    return false;
}

/* PyQt: sip derives a class of its own from each of Qt's, whose first member is the Python object, behind what Qt's class
 * has; and that object begins with the address of the C++ object. */
static uint64_t sip_s_object(const lc_cpython_source *source, uint64_t receiver)
{
    const uint64_t header = source->layout.object_type + sizeof(uint64_t); /* the type is its last word */
    for (uint64_t place = QOBJECT_BYTES; place <= QT_CLASS_BYTES_MAX; place += sizeof(uint64_t)) {
        const uint64_t object = lc_word_at(source, receiver + place);
        if (object != 0 && lc_word_at(source, object + header) == receiver) {
            return object;
        }
    }
    return 0;
}

/* PySide: shiboken keeps a std::unordered_map from C++ objects to those of Python; its buckets and their number come first.
 * Other threads may change it meanwhile. */
static uint64_t shiboken_s_object(const lc_cpython_source *source, uint64_t receiver)
{
    const uint64_t map = lc_word_at(source, atomic_load_explicit(&wrappers, memory_order_relaxed));
    const uint64_t buckets = lc_word_at(source, map), count = lc_word_at(source, map + sizeof(uint64_t));
    if (map == 0 || buckets == 0 || count == 0) {
        return 0;
    }
    uint64_t node = lc_word_at(source, lc_word_at(source, buckets + sizeof(uint64_t) * (receiver % count)));
    for (uint32_t i = 0; i < BUCKET_NODES_MAX && node != 0; i++) { /* next, key, value */
        if (lc_word_at(source, node + sizeof(uint64_t)) == receiver) {
            return lc_word_at(source, node + 2u * sizeof(uint64_t));
        }
        node = lc_word_at(source, node);
    }
    return 0;
}

/* The name of the class that the program's object has, in `into`; 0: it is no Python object. */
static uint32_t python_class(const lc_cpython_source *source, uint64_t receiver, char *into, const char **begin)
{
    uint64_t object = sip_s_object(source, receiver);
    object = object != 0 ? object : shiboken_s_object(source, receiver);
    if (!is_python_object(source, object)) {
        return 0;
    }
    /* tp_name has the module before it, where it is a binding's own class. */
    const uint32_t bytes = read_name(source, lc_word_at(source, lc_type_at(source, object) + source->layout.type_name), into);
    uint32_t from = bytes;
    while (from > 0 && (is_of_a_name(into[from - 1u]) || (unsigned char)into[from - 1u] >= 0x80)) {
        from--;
    }
    *begin = into + from;
    return bytes - from;
}

/* ---- names ------------------------------------------------------------------------------- */

static lc_text put_parts(lc_text class_name, uint32_t type, char *into)
{
    const char *event = lc_qt_event_name(type);
    char number[24] = "";
    if (event == NULL && type != LC_QT_TYPE_UNKNOWN) {
        snprintf(number, sizeof number, "event %u", type); /* of the program's own */
        event = number;
    }
    const char *separator = class_name.length > 0 && event != NULL ? ": " : "";
    const int bytes = snprintf(into, LC_STRING_MAX, "%.*s%s%s", (int)class_name.length, class_name.bytes, separator,
                               event != NULL ? event : "");
    return (lc_text){into, (uint32_t)bytes};
}

/* By the C++ type's name. */
static lc_text put(const lc_cpython_source *source, uint64_t name_address, uint32_t type, char *into)
{
    char name[TYPE_NAME_MAX];
    const char *begin = "";
    const uint32_t bytes = lc_qt_class_name(name, read_name(source, name_address, name), &begin);
    return put_parts((lc_text){begin, bytes}, type, into);
}

lc_text lc_qt_work_name(const lc_cpython_source *source, uint64_t work, char *into)
{
    const uint64_t receiver = work & LC_WORK_QT_RECEIVER_MASK;
    char python_name[TYPE_NAME_MAX];
    const char *begin = "";
    const uint32_t bytes = python_class(source, receiver, python_name, &begin);
    if (bytes > 0) {
        return put_parts((lc_text){begin, bytes}, (uint32_t)(work >> 48), into);
    }
    const uint64_t table = lc_word_at(source, receiver);
    const uint64_t type_info = table == 0 ? 0 : lc_word_at(source, table - sizeof(uint64_t));
    const uint64_t name = type_info == 0 ? 0 : lc_word_at(source, type_info + sizeof(uint64_t));
    return put(source, name, (uint32_t)(work >> 48), into);
}

lc_text lc_qt_kind_name(const lc_cpython_source *source, lc_work_kind kind, char *into)
{
    return put(source, kind.key & ~LC_KIND_QT, (uint32_t)kind.owner, into);
}
