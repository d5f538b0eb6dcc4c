/* The location table: 4 bytes of first line, 2 of the unit asked for, then the table. */
#include <string.h>

#include "cpython/walker/linetable.h"
#include "fuzz/target.h"

LC_FUZZ_TARGET(linetable)
{
    uint32_t first_line = 0;
    uint16_t unit = 0;
    if (size < sizeof first_line + sizeof unit) {
        return 0;
    }
    memcpy(&first_line, data, sizeof first_line);
    memcpy(&unit, data + sizeof first_line, sizeof unit);
    const size_t bytes = size - sizeof first_line - sizeof unit;
    uint8_t *table = malloc(bytes + 1); /* of its exact size, so that reading past it shows */
    memcpy(table, data + size - bytes, bytes);
    lc_position position;
    const bool found = lc_linetable_find(table, bytes, first_line & 0x7FFFFFFFu, unit, &position);
    LC_FUZZ_HOLDS(found || (position.line == 0 && position.column == 0));
    LC_FUZZ_HOLDS(position.line <= INT32_MAX && position.end_line <= INT32_MAX);
    free(table);
    return 0;
}
