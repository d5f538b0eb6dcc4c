/* Names of Qt's events from memory: receiver -> virtual table -> type_info -> name, as the Itanium C++ ABI lays them out. */
#include "work_qt.h"

#include <stdio.h>
#include <string.h>

#define TYPE_NAME_MAX 128u

static uint64_t word(const lc_cpython_source *source, uint64_t address)
{
    uint64_t value = 0;
    return address != 0 && address % 8 == 0 && lc_read(source->reader, address, &value, sizeof value) ? value : 0;
}

/* A C string, which may end right before an unmapped page. */
static uint32_t read_name(const lc_cpython_source *source, uint64_t address, char *into)
{
    uint32_t used = 0;
    while (used < TYPE_NAME_MAX && address != 0) {
        const uint32_t to_page_end = 4096u - (uint32_t)((address + used) % 4096u);
        const uint32_t part = to_page_end < TYPE_NAME_MAX - used ? to_page_end : TYPE_NAME_MAX - used;
        if (!lc_read(source->reader, address + used, into + used, part)) {
            return 0;
        }
        const char *end = memchr(into + used, '\0', part);
        if (end != NULL) {
            return (uint32_t)(end - into);
        }
        used += part;
    }
    return 0;
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

static lc_text put(const lc_cpython_source *source, uint64_t name_address, uint32_t type, char *into)
{
    char name[TYPE_NAME_MAX];
    const char *class_begin = "";
    const uint32_t class_bytes = lc_qt_class_name(name, read_name(source, name_address, name), &class_begin);
    const char *event = lc_qt_event_name(type);
    char number[24] = "";
    if (event == NULL && type != LC_QT_TYPE_UNKNOWN) {
        snprintf(number, sizeof number, "event %u", type); /* of the program's own */
        event = number;
    }
    const char *separator = class_bytes > 0 && event != NULL ? ": " : "";
    const int bytes = snprintf(into, LC_STRING_MAX, "%.*s%s%s", (int)class_bytes, class_begin, separator,
                               event != NULL ? event : "");
    return (lc_text){into, (uint32_t)bytes};
}

lc_text lc_qt_work_name(const lc_cpython_source *source, uint64_t work, char *into)
{
    const uint64_t table = word(source, work & LC_WORK_QT_RECEIVER_MASK);
    const uint64_t type_info = table == 0 ? 0 : word(source, table - sizeof(uint64_t));
    const uint64_t name = type_info == 0 ? 0 : word(source, type_info + sizeof(uint64_t));
    return put(source, name, (uint32_t)(work >> 48), into);
}

lc_text lc_qt_kind_name(const lc_cpython_source *source, lc_work_kind kind, char *into)
{
    return put(source, kind.key & ~LC_KIND_QT, (uint32_t)kind.owner, into);
}
