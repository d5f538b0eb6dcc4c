#include "cpython/walker/exception_table.h"

#include <stdbool.h>
#include <stddef.h>

enum { ENTRY_BEGINS = 0x80, CONTINUES = 0x40, PAYLOAD = 0x3F, VARINT_BYTES_MAX = 6 };

typedef struct {
    const uint8_t *at;
    const uint8_t *end;
} cursor;

/* Six bits a byte, the highest ones first. */
static bool varint(cursor *c, uint32_t *value)
{
    *value = 0;
    for (int i = 0; i < VARINT_BYTES_MAX && c->at < c->end; i++) {
        const uint8_t byte = *c->at++;
        *value = *value << 6 | (byte & PAYLOAD);
        if (!(byte & CONTINUES)) {
            return true;
        }
    }
    return false;
}

uint32_t lc_exception_depth(const uint8_t *table, uint32_t bytes, uint32_t unit)
{
    cursor c = {table, table + bytes};
    while (c.at < c.end && (*c.at & ENTRY_BEGINS)) {
        uint32_t start, length, handler, depth_and_lasti;
        if (!varint(&c, &start) || !varint(&c, &length) || !varint(&c, &handler) || !varint(&c, &depth_and_lasti) ||
            start > unit) { /* entries are sorted and do not overlap */
            return 0;
        }
        if (unit - start < length) {
            return depth_and_lasti >> 1;
        }
    }
    return 0;
}
