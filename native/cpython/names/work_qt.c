/* Names of Qt's events from memory: receiver -> virtual table -> type_info -> name, as the Itanium C++ ABI
 * lays them out. What bindings keep of their objects is not read. */
#include "cpython/names/work_words.h"

#include <stdio.h>
#include <string.h>

#include "cpython/objects/objects.h"

#define TYPE_NAME_MAX 128u

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
    /* what QML makes of a class: QQmlPrivate::QQmlElement<class> */
    static const char element[] = "QQmlElement";
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

static lc_text put_parts(lc_text class_name, uint32_t type, char *into)
{
    const char *event = lc_qt_event_name(type);
    char number[24] = "";
    if (event == NULL && type != LC_QT_TYPE_UNKNOWN) {
        snprintf(number, sizeof number, "event %u", type); /* of the program's own */
        event = number;
    }
    const char *separator = class_name.length > 0 && event != NULL ? ": " : "";
    const int bytes = snprintf(into, LC_STRING_MAX, "%.*s%s%s", (int)class_name.length, class_name.bytes,
                               separator, event != NULL ? event : "");
    return (lc_text){into, (uint32_t)bytes};
}

static lc_text put(const lc_cpython_source *source, uint64_t name_address, uint32_t type, char *into)
{
    char name[TYPE_NAME_MAX];
    const char *begin = "";
    const uint32_t bytes = lc_qt_class_name(name, read_name(source, name_address, name), &begin);
    return put_parts((lc_text){begin, bytes}, type, into);
}

lc_text lc_qt_work_name(const lc_cpython_source *source, uint64_t work, char *into)
{
    const uint64_t receiver = work & LC_WORK_ADDRESS_MASK;
    const uint64_t table = lc_word_at(source, receiver);
    const uint64_t type_info = table == 0 ? 0 : lc_word_at(source, table - sizeof(uint64_t));
    const uint64_t name = type_info == 0 ? 0 : lc_word_at(source, type_info + sizeof(uint64_t));
    return put(source, name, (uint32_t)(work >> 48), into);
}

lc_text lc_qt_kind_name(const lc_cpython_source *source, lc_work_kind kind, char *into)
{
    return put(source, kind.key & ~LC_KIND_QT, (uint32_t)kind.owner, into);
}

/* ---- events ---------------------------------------------------------------------------------------
 *
 * Names of the events that programs do work for, by their numbers (QEvent::Type), which are part of Qt's
 * binary interface: the same from Qt 5 on. Others are named by their numbers. */

static const char *const names[] = {
    [1] = "Timer",
    [2] = "MouseButtonPress",
    [3] = "MouseButtonRelease",
    [4] = "MouseButtonDblClick",
    [5] = "MouseMove",
    [6] = "KeyPress",
    [7] = "KeyRelease",
    [8] = "FocusIn",
    [9] = "FocusOut",
    [10] = "Enter",
    [11] = "Leave",
    [12] = "Paint",
    [13] = "Move",
    [14] = "Resize",
    [17] = "Show",
    [18] = "Hide",
    [19] = "Close",
    [20] = "Quit",
    [24] = "WindowActivate",
    [25] = "WindowDeactivate",
    [31] = "Wheel",
    [33] = "WindowTitleChange",
    [43] = "MetaCall",
    [50] = "SockAct",
    [52] = "DeferredDelete",
    [60] = "DragEnter",
    [61] = "DragMove",
    [62] = "DragLeave",
    [63] = "Drop",
    [76] = "LayoutRequest",
    [77] = "UpdateRequest",
    [82] = "ContextMenu",
    [87] = "TabletMove",
    [89] = "LanguageChange",
    [92] = "TabletPress",
    [93] = "TabletRelease",
    [100] = "StyleChange",
    [105] = "WindowStateChange",
    [110] = "ToolTip",
    [113] = "ActionChanged",
    [117] = "Shortcut",
    [129] = "HoverMove",
    [154] = "ZeroTimerEvent",
    [155] = "GraphicsSceneMouseMove",
    [156] = "GraphicsSceneMousePress",
    [157] = "GraphicsSceneMouseRelease",
    [158] = "GraphicsSceneMouseDoubleClick",
    [194] = "TouchBegin",
    [195] = "TouchUpdate",
    [196] = "TouchEnd",
    [206] = "Expose",
    [214] = "ApplicationStateChange",
};

const char *lc_qt_event_name(uint32_t type)
{
    return type < sizeof names / sizeof names[0] ? names[type] : NULL;
}
