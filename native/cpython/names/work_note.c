#include "cpython/names/work_note.h"

#include <stdio.h>
#include <string.h>

#define EVENT_TEXT_MAX 32u

/* As bindings write them, by X's numbers; Tk's own ones follow X's (generic/tk.h). A key's name is the user's input: it is
 * not told. */
static const char *const event_names[] = {
    [2] = "Key",           [3] = "KeyRelease",        [4] = "Button",            [5] = "ButtonRelease",
    [6] = "Motion",        [7] = "Enter",             [8] = "Leave",             [9] = "FocusIn",
    [10] = "FocusOut",     [11] = "KeymapNotify",     [12] = "Expose",           [13] = "GraphicsExpose",
    [14] = "NoExpose",     [15] = "Visibility",       [16] = "Create",           [17] = "Destroy",
    [18] = "Unmap",        [19] = "Map",              [20] = "MapRequest",       [21] = "Reparent",
    [22] = "Configure",    [23] = "ConfigureRequest", [24] = "Gravity",          [25] = "ResizeRequest",
    [26] = "Circulate",    [27] = "CirculateRequest", [28] = "Property",         [29] = "SelectionClear",
    [30] = "SelectionRequest", [31] = "Selection",    [32] = "Colormap",         [33] = "ClientMessage",
    [34] = "Mapping",      [36] = "Activate",         [37] = "Deactivate",       [38] = "MouseWheel",
};

static const char *const ways[LC_WAYS] = {
    [LC_WAY_COMMAND] = "", [LC_WAY_AFTER] = "after",     [LC_WAY_AFTER_IDLE] = "after_idle",
    [LC_WAY_IDLE] = "idle", [LC_WAY_TIMEOUT] = "timeout",
};

enum { BUTTON = 4, BUTTON_RELEASE = 5, VIRTUAL = 35 };

bool lc_note_read(const lc_cpython_source *source, uint64_t work, lc_work_note *out)
{
    return lc_read(source->reader, work & ~LC_WORK_NOTE_TAG_MASK, out, sizeof *out);
}

static const char *event_text(const lc_work_note *note, char *into)
{
    const uint32_t names = sizeof event_names / sizeof *event_names;
    const char *name = note->event < names ? event_names[note->event] : NULL;
    into[0] = '\0';
    if (note->event == VIRTUAL) {
        return " (<<virtual event>>)";
    }
    if (name != NULL && (note->event == BUTTON || note->event == BUTTON_RELEASE) && note->button != 0) {
        snprintf(into, EVENT_TEXT_MAX, " (<%s-%u>)", name, (unsigned)note->button);
    } else if (name != NULL) {
        snprintf(into, EVENT_TEXT_MAX, " (<%s>)", name);
    }
    return into;
}

lc_text lc_note_text(const lc_work_note *note, lc_text name, lc_text widget, char *into)
{
    char event[EVENT_TEXT_MAX];
    const char *front = note->way < LC_WAYS ? ways[note->way] : "";
    uint32_t used = 0;
    if (name.length == 0) {
        return (lc_text){0};
    }
    const char *behind = event_text(note, event);
    const lc_text colon = {": ", front[0] != '\0' || widget.length != 0 ? 2u : 0u};
    const lc_text before = front[0] != '\0' ? (lc_text){front, (uint32_t)strlen(front)} : widget;
    const lc_text parts[] = {before, colon, name, {behind, (uint32_t)strlen(behind)}};
    for (uint32_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const uint32_t room = LC_STRING_MAX - used;
        uint32_t part = parts[i].length < room ? parts[i].length : room;
        while (part < parts[i].length && part > 0 && ((unsigned char)parts[i].bytes[part] & 0xC0u) == 0x80u) {
            part--; /* not in the middle of a character */
        }
        if (part > 0) {
            memcpy(into + used, parts[i].bytes, part);
        }
        used += part;
    }
    return (lc_text){into, used};
}
