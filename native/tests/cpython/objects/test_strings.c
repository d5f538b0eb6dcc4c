/* Text of all three kinds of PEP 393, cut where there is no room. */
#include "cpython/objects/strings.h"

#include <string.h>

#include "tests/check.h"

static int gives(uint32_t kind, const void *characters, size_t count, size_t room, const char *utf8)
{
    char out[64];
    const size_t bytes = lc_utf8_from_pep393(characters, kind, count, out, room);
    return bytes == strlen(utf8) && memcmp(out, utf8, bytes) == 0;
}

int main(void)
{
    static const uint8_t latin_1[] = {'g', 'r', 0xE4, 0xDF};
    static const uint16_t two[] = {0x4E16, 'a', 0xDCFF, 0xFFFF, 0x7FF, 0x800};
    static const uint32_t four[] = {'a', 0x1F424, 0x10FFFF, 0x110000, 0xFFFFFFFF, 0xD800};
    CHECK(gives(1, latin_1, 4, 64, "gr\xC3\xA4\xC3\x9F"));
    CHECK(gives(1, latin_1, 4, 5, "gr\xC3\xA4"));
    CHECK(gives(1, latin_1, 4, 3, "gr"));
    CHECK(gives(1, latin_1, 4, 0, ""));
    CHECK(gives(2, two, 2, 64,
                "\xE4\xB8\x96"
                "a"));
    CHECK(gives(2, two + 2, 4, 64, "\xEF\xBF\xBD\xEF\xBF\xBF\xDF\xBF\xE0\xA0\x80"));
    CHECK(gives(4, four, 3, 64, "a\xF0\x9F\x90\xA4\xF4\x8F\xBF\xBF"));
    CHECK(gives(4, four, 3, 4, "a"));
    CHECK(gives(4, four + 3, 3, 64, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"));
    CHECK(gives(3, four, 3, 64, "") && gives(0, four, 3, 64, ""));
    return 0;
}
