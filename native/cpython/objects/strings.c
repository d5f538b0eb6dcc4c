#include "cpython/objects/strings.h"

#include <string.h>

#define REPLACEMENT 0xFFFDu

static uint32_t character(const uint8_t *data, uint32_t kind, size_t index)
{
    uint16_t two;
    uint32_t four;
    switch (kind) {
    case 1:
        return data[index];
    case 2:
        memcpy(&two, data + index * 2, sizeof two);
        return two;
    default:
        memcpy(&four, data + index * 4, sizeof four);
        return four;
    }
}

static size_t encode(uint32_t c, char bytes[4])
{
    if (c < 0x80) {
        bytes[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        bytes[0] = (char)(0xC0 | c >> 6);
        bytes[1] = (char)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) {
        c = REPLACEMENT;
    }
    if (c < 0x10000) {
        bytes[0] = (char)(0xE0 | c >> 12);
        bytes[1] = (char)(0x80 | (c >> 6 & 0x3F));
        bytes[2] = (char)(0x80 | (c & 0x3F));
        return 3;
    }
    bytes[0] = (char)(0xF0 | c >> 18);
    bytes[1] = (char)(0x80 | (c >> 12 & 0x3F));
    bytes[2] = (char)(0x80 | (c >> 6 & 0x3F));
    bytes[3] = (char)(0x80 | (c & 0x3F));
    return 4;
}

size_t lc_utf8_from_pep393(const uint8_t *data, uint32_t kind, size_t count, char *out, size_t room)
{
    if (kind != 1 && kind != 2 && kind != 4) {
        return 0;
    }
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        char bytes[4];
        const size_t length = encode(character(data, kind, i), bytes);
        if (length > room - used) {
            break;
        }
        memcpy(out + used, bytes, length);
        used += length;
    }
    return used;
}
