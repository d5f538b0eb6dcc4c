/* Lines about what is replaced. */
#include "core/patches/patches.h"

#include <string.h>

#include "tests/check.h"

enum { LINE = 500 };

/* A line of so many bytes, with its line break, that says nothing else. */
static int note_line(int number, size_t bytes)
{
    char words[LINE + 1];
    memset(words, 'x', bytes - 1u);
    words[bytes - 1u] = '\0';
    return lc_patch_note("+%05d%s", number, words + 6);
}

TEST(lines_that_fill_all_the_room_can_be_read)
{
    size_t left = LC_PATCHES_BYTES - (sizeof LC_PATCHES_MAGIC - 1u);
    for (int number = 0; left > 0; number++) {
        const size_t bytes = left > LINE + LINE / 2 ? LINE : left > LINE ? left / 2u : left;
        CHECK(note_line(number, bytes) > 0);
        left -= bytes;
    }
    CHECK(strlen(lc_patches()) == LC_PATCHES_BYTES);
    CHECK(note_line(0, LINE) == 0 && strlen(lc_patches()) == LC_PATCHES_BYTES);
}

int main(void) { return run_tests(); }
