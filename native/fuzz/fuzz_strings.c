/* PEP 393 text: a byte for the kind, one for the room, then the characters. */
#include <string.h>

#include "cpython/objects/strings.h"
#include "fuzz/target.h"

static int is_utf8(const unsigned char *s, size_t bytes)
{
    size_t i = 0;
    while (i < bytes) {
        const size_t more = s[i] < 0x80 ? 0 : s[i] < 0xC2 ? 9 : s[i] < 0xE0 ? 1 : s[i] < 0xF0 ? 2 : 3;
        if (more == 9 || s[i] > 0xF4 || more >= bytes - i) {
            return 0;
        }
        for (size_t k = 1; k <= more; k++) {
            if ((s[i + k] & 0xC0) != 0x80) {
                return 0;
            }
        }
        i += more + 1;
    }
    return 1;
}

LC_FUZZ_TARGET(strings)
{
    if (size < 2) {
        return 0;
    }
    const uint32_t kind = data[0] % 6;
    const size_t room = data[1];
    const size_t count = kind == 0 ? 0 : (size - 2) / kind;
    uint8_t *characters = malloc(count * kind + 1);
    char *out = malloc(room + 1);
    memcpy(characters, data + 2, count * kind);
    const size_t bytes = lc_utf8_from_pep393(characters, kind, count, out, room);
    LC_FUZZ_HOLDS(bytes <= room && is_utf8((const unsigned char *)out, bytes));
    free(out);
    free(characters);
    return 0;
}
