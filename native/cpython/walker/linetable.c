#include "cpython/walker/linetable.h"

enum {
    ENTRY_ONE_LINE_0 = 10, /* 10, 11, 12: on this line, the next, the one after */
    ENTRY_ONE_LINE_2 = 12,
    ENTRY_NO_COLUMNS = 13,
    ENTRY_LONG = 14,
    ENTRY_NONE = 15
};

typedef struct {
    const uint8_t *at;
    const uint8_t *end;
    bool broken;
} cursor;

static uint32_t next_byte(cursor *c)
{
    if (c->at == c->end) {
        c->broken = true;
        return 0;
    }
    return *c->at++;
}

/* Six bits a byte, least significant first; bit 6 says that more follow. */
static uint32_t next_varint(cursor *c)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift <= 30; shift += 6) {
        const uint32_t byte = next_byte(c);
        value |= (uint64_t)(byte & 63u) << shift;
        if (!(byte & 64u)) {
            if (value > INT32_MAX) {
                c->broken = true;
            }
            return (uint32_t)value;
        }
    }
    c->broken = true; /* no compiler writes numbers of more than 32 bits */
    return 0;
}

static int64_t next_signed_varint(cursor *c)
{
    const uint32_t value = next_varint(c);
    return value & 1u ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

typedef struct { /* columns from 0, -1 unknown */
    int64_t end_line;
    int64_t column;
    int64_t end_column;
    bool has_line;
} entry;

static entry next_entry(cursor *c, unsigned code, int64_t *line)
{
    entry e = {.end_line = 0, .column = -1, .end_column = -1, .has_line = true};
    if (code == ENTRY_NONE) {
        e.has_line = false;
    } else if (code == ENTRY_LONG) {
        *line += next_signed_varint(c);
        e.end_line = *line + next_varint(c);
        e.column = (int64_t)next_varint(c) - 1;
        e.end_column = (int64_t)next_varint(c) - 1;
    } else if (code == ENTRY_NO_COLUMNS) {
        *line += next_signed_varint(c);
        e.end_line = *line;
    } else if (code >= ENTRY_ONE_LINE_0 && code <= ENTRY_ONE_LINE_2) {
        *line += code - ENTRY_ONE_LINE_0;
        e.end_line = *line;
        e.column = next_byte(c);
        e.end_column = next_byte(c);
    } else {
        const uint32_t byte = next_byte(c);
        e.end_line = *line;
        e.column = (int64_t)(code << 3 | byte >> 4);
        e.end_column = e.column + (byte & 15u);
    }
    return e;
}

static uint32_t as_line(int64_t line) { return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0; }

static uint16_t as_column(int64_t column)
{
    return column >= 0 && column < UINT16_MAX ? (uint16_t)(column + 1) : 0;
}

bool lc_linetable_find(const uint8_t *table, size_t bytes, uint32_t first_line, uint64_t unit,
                       lc_position *out)
{
    *out = (lc_position){0};
    cursor c = {.at = table, .end = table + bytes, .broken = false};
    int64_t line = first_line;
    uint64_t start = 0;
    while (c.at != c.end) { /* every turn takes at least one byte */
        const uint32_t head = next_byte(&c);
        if (!(head & 128u)) {
            return false;
        }
        const entry e = next_entry(&c, head >> 3 & 15u, &line);
        if (c.broken) {
            return false;
        }
        start += (head & 7u) + 1;
        if (unit < start) {
            if (e.has_line) {
                out->line = as_line(line);
                out->end_line = as_line(e.end_line);
                out->column = as_column(e.column);
                out->end_column = as_column(e.end_column);
            }
            return true;
        }
    }
    return false;
}
