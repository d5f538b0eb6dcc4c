/* The depth that a handler keeps, from tables as CPython writes them and from ones that it never would. */
#include "cpython/walker/frame_values.h"

#include <string.h>

#include "tests/check.h"

/* def f(lock):
 *     with lock:
 *         g()              3.11: (6, 36, 1), (62, 70, 3), (76, 78, 3) in bytes and depth; units are two
 *                          bytes */
static const uint8_t with_block[] = {0x83, 0x0f, 0x1f, 0x03, 0x9f, 0x04, 0x23, 0x07, 0xa6, 0x01, 0x23, 0x07};

static uint32_t depth(uint32_t unit) { return lc_exception_depth(with_block, sizeof with_block, unit); }

TEST(a_handler_covers_its_block_only)
{
    /* BEFORE_WITH: a thread that waits for the lock is not in its block */
    CHECK(depth(0) == 0 && depth(2) == 0);
    CHECK(depth(3) == 1 && depth(17) == 1 && depth(18) == 0);
    CHECK(depth(31) == 3 && depth(34) == 3 && depth(35) == 0);
    CHECK(depth(38) == 3 && depth(39) == 0 && depth(UINT32_MAX) == 0);
}

TEST(numbers_of_several_bytes_are_put_together)
{
    static const uint8_t table[] = {0xc1, 0x02, 0x41, 0x00, 0x41, 0x01, 0x42, 0x03}; /* 66, 64, 65, 131 */
    CHECK(lc_exception_depth(table, sizeof table, 65) == 0);
    CHECK(lc_exception_depth(table, sizeof table, 66) == 65 &&
          lc_exception_depth(table, sizeof table, 129) == 65);
    CHECK(lc_exception_depth(table, sizeof table, 130) == 0);
}

TEST(tables_that_are_none_tell_nothing)
{
    uint8_t bytes[64] = {0};
    CHECK(lc_exception_depth(bytes, 0, 0) == 0);
    for (uint32_t cut = 0; cut < sizeof with_block; cut++) {
        (void)lc_exception_depth(with_block, cut, 77);
    }
    for (int value = 0; value < 256; value++) {
        memset(bytes, value, sizeof bytes);
        (void)lc_exception_depth(bytes, sizeof bytes, 5);
    }
}

int main(void) { return run_tests(); }
