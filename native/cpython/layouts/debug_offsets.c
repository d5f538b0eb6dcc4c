#include "cpython/layouts/layout.h"

#include <string.h>

#define COOKIE "xdebugpy"
#define FIRST_VERSION 0x030D0000u
#define READ_BYTES 512u
#define OFFSET_MAX (16u * 1024u * 1024u) /* the interpreter state has some hundred KiB */

typedef struct { /* the opening of _Py_DebugOffsets, the same in all versions */
    char cookie[8];
    uint64_t version;
    uint64_t free_threaded;
} opening;

typedef struct {
    size_t field;       /* offset in lc_layout */
    uint32_t places[3]; /* offset in _Py_DebugOffsets of 3.13, 3.14, 3.15 */
} published;

static const published facts[] = {
#define FACT(name, struct_name, member, v313, v314, v315) {offsetof(lc_layout, name), {v313, v314, v315}},
    LC_DEBUG_OFFSETS_TABLE(FACT)
#undef FACT
};

bool lc_debug_offsets_apply(lc_layout *layout, const lc_memory_reader *reader, uint64_t runtime,
                            uint64_t version_hex, const char **why_not)
{
    const uint64_t column = (version_hex >> 16) - (FIRST_VERSION >> 16);
    if (version_hex < FIRST_VERSION) {
        return true;
    }
    uint8_t bytes[READ_BYTES];
    opening head;
    if (!lc_read(reader, runtime, bytes, sizeof bytes)) {
        *why_not = "the interpreter's debug offsets cannot be read";
        return false;
    }
    memcpy(&head, bytes, sizeof head);
    if (memcmp(head.cookie, COOKIE, sizeof head.cookie) != 0 || head.version != version_hex ||
        column >= sizeof facts[0].places / sizeof facts[0].places[0]) {
        *why_not = "the interpreter's debug offsets are not those of its version";
        return false;
    }
    if (head.free_threaded != 0) {
        *why_not = "free-threaded builds of CPython are not supported by the native walker";
        return false;
    }
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) {
        uint64_t offset;
        memcpy(&offset, bytes + facts[i].places[column], sizeof offset);
        if (offset > OFFSET_MAX) {
            *why_not = "the interpreter's debug offsets are out of bounds";
            return false;
        }
        const uint32_t value = (uint32_t)offset;
        memcpy((char *)layout + facts[i].field, &value, sizeof value);
    }
    if (!lc_layout_sane(layout)) {
        *why_not = "the interpreter's debug offsets do not fit together";
        return false;
    }
    return true;
}
