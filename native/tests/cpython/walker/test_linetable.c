/* Location tables: every kind of entry, and tables that end or lie. */
#include "cpython/walker/linetable.h"

#include "tests/check.h"

static int is(lc_position p, uint32_t line, uint32_t end_line, uint16_t column, uint16_t end_column)
{
    return p.line == line && p.end_line == end_line && p.column == column && p.end_column == end_column;
}

#define HEAD(code, units) (uint8_t)(0x80 | (code) << 3 | ((units) - 1))

TEST(test_every_kind_of_entry)
{
    static const uint8_t table[] = {
        HEAD(0, 2),  0x34,                               /* units 0, 1: columns 3 to 7 of the first line */
        HEAD(9, 1),  0x2F,                               /* unit 2: columns 74 to 89 */
        HEAD(11, 1), 4,    9,                            /* unit 3: next line, columns 4 to 9 */
        HEAD(12, 1), 200,  250,                          /* unit 4: two lines on */
        HEAD(13, 8), 0x03,                               /* units 5 to 12: line - 1, no columns */
        HEAD(15, 1),                                     /* unit 13: no line at all */
        HEAD(14, 1), 0x42, 0x01, 0x03, 0x01, 0x41, 0x02, /* unit 14: line + 33, 3 lines, columns 0 to 128 */
        HEAD(10, 1), 1,    2,                            /* unit 15: that line */
    };
    static const struct {
        uint64_t unit;
        uint32_t line, end_line;
        uint16_t column, end_column;
    } expected[] = {
        {0, 100, 100, 4, 8},     {1, 100, 100, 4, 8},  {2, 100, 100, 75, 90}, {3, 101, 101, 5, 10},
        {4, 103, 103, 201, 251}, {5, 102, 102, 0, 0},  {12, 102, 102, 0, 0},  {13, 0, 0, 0, 0},
        {14, 135, 138, 1, 129},  {15, 135, 135, 2, 3},
    };
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        lc_position p;
        CHECK(lc_linetable_find(table, sizeof table, 100, expected[i].unit, &p));
        CHECK(is(p, expected[i].line, expected[i].end_line, expected[i].column, expected[i].end_column));
    }
    lc_position past;
    CHECK(!lc_linetable_find(table, sizeof table, 100, 16, &past));
    CHECK(is(past, 0, 0, 0, 0));
}

TEST(test_malformed_tables_are_refused)
{
    static const uint8_t no_head[] = {0x01, 0x02};
    static const uint8_t cut_short[] = {HEAD(0, 1)};
    static const uint8_t cut_varint[] = {HEAD(14, 1), 0x40};
    static const uint8_t long_varint[] = {HEAD(13, 1), 0x7F, 0x7F, 0x7F, 0x7F, 0x7F, 0x7F, 0x7F, 0x01};
    lc_position p;
    CHECK(!lc_linetable_find(NULL, 0, 1, 0, &p));
    CHECK(!lc_linetable_find(no_head, sizeof no_head, 1, 0, &p));
    CHECK(!lc_linetable_find(cut_short, sizeof cut_short, 1, 0, &p));
    CHECK(!lc_linetable_find(cut_varint, sizeof cut_varint, 1, 0, &p));
    CHECK(!lc_linetable_find(long_varint, sizeof long_varint, 1, 0, &p));
}

TEST(test_lines_and_columns_that_do_not_fit_are_unknown)
{
    static const uint8_t below_zero[] = {HEAD(13, 1), 0x09};                   /* line - 4 */
    static const uint8_t wide[] = {HEAD(14, 1), 0, 0, 0x7F, 0x7F, 0x1F, 0x01}; /* column 131,070 */
    lc_position p;
    CHECK(lc_linetable_find(below_zero, sizeof below_zero, 2, 0, &p));
    CHECK(is(p, 0, 0, 0, 0));
    CHECK(lc_linetable_find(wide, sizeof wide, 2, 0, &p));
    CHECK(is(p, 2, 2, 0, 1));
}

int main(void) { return run_tests(); }
