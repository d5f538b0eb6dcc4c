#include "qt_object_name.h"

#include <stdatomic.h>
#include <string.h>

#define PRIVATE_AT 8u /* in a QObject: behind its table's address */
#define OWNER_AT 8u   /* in the private part: behind its table's address, the object; no more once it is freed */
#define PRIVATE_BYTES 256u
#define EXTRA_BYTES 192u
#define UNITS_MAX 40u
#define UNITS_PLAUSIBLE (UINT64_C(1) << 20)

/* A QString of Qt 6: its data's owner, its text, its length. Of Qt 5: one word, the address of a head with the length as second
 * int, and where behind the head's begin the text is as third word. */
typedef struct {
    uint16_t extra_at; /* in the private part */
    uint16_t name_at;  /* in the extra part */
    uint16_t is_qt_5;
    uint16_t is_known;
} place;

static _Atomic uint64_t learned; /* a place */

static place place_now(void)
{
    const uint64_t bits = atomic_load_explicit(&learned, memory_order_relaxed);
    place known;
    memcpy(&known, &bits, sizeof known);
    return known;
}

static uint64_t word(const lc_cpython_source *source, uint64_t address)
{
    uint64_t value = 0;
    return address != 0 && address % 8 == 0 && lc_read(source->reader, address, &value, sizeof value) ? value : 0;
}

/* As much of it as there is, in words; the rest is 0. */
static void read_words(const lc_cpython_source *source, uint64_t address, uint64_t *into, uint32_t bytes)
{
    memset(into, 0, bytes);
    if (address == 0 || address % 8 != 0) {
        return;
    }
    const uint32_t to_page_end = 4096u - (uint32_t)(address % 4096u);
    const uint32_t first = bytes < to_page_end ? bytes : to_page_end;
    if (lc_read(source->reader, address, into, first) && first < bytes) {
        (void)lc_read(source->reader, address + first, (char *)into + first, bytes - first);
    }
}

/* ---- strings ----------------------------------------------------------------------------- */

typedef struct {
    uint64_t text; /* 0: empty, or none */
    uint64_t units;
} string;

static string string_at(const lc_cpython_source *source, uint64_t address, bool is_qt_5)
{
    string found = {0};
    if (!is_qt_5) {
        uint64_t words[3] = {0};
        if (lc_read(source->reader, address, words, sizeof words)) {
            found = (string){words[1], words[2]};
        }
    } else {
        const uint64_t head = word(source, address);
        const uint64_t counts = word(source, head), offset = word(source, head + 16u);
        found = (string){head != 0 ? head + offset : 0, counts >> 32};
    }
    return found.units <= UNITS_PLAUSIBLE && found.text % 2 == 0 ? found : (string){0};
}

static uint32_t read_units(const lc_cpython_source *source, string of, uint16_t *into)
{
    const uint32_t units = of.units < UNITS_MAX ? (uint32_t)of.units : UNITS_MAX;
    return of.text != 0 && units != 0 && lc_read(source->reader, of.text, into, units * sizeof *into) ? units : 0;
}

/* ---- learning ---------------------------------------------------------------------------- */

static bool is_name_at(const lc_cpython_source *source, uint64_t address, bool is_qt_5, const lc_qt_named *known)
{
    uint16_t units[UNITS_MAX];
    const string found = string_at(source, address, is_qt_5);
    return found.units == known->units && read_units(source, found, units) == known->units &&
           memcmp(units, known->name, known->units * sizeof *units) == 0;
}

static bool find_in_extra(const lc_cpython_source *source, uint64_t extra, const lc_qt_named *known, place *out)
{
    uint64_t words[EXTRA_BYTES / 8u];
    read_words(source, extra, words, sizeof words);
    for (uint16_t at = 0; at < EXTRA_BYTES; at += 8u) {
        const uint32_t i = at / 8u;
        const bool may_be_qt_6 = i + 2u < EXTRA_BYTES / 8u && words[i + 2u] == known->units;
        if (may_be_qt_6 && is_name_at(source, extra + at, false, known)) {
            *out = (place){.name_at = at, .is_known = 1};
            return true;
        }
        if (words[i] != 0 && words[i] % 8u == 0 && is_name_at(source, extra + at, true, known)) {
            *out = (place){.name_at = at, .is_qt_5 = 1, .is_known = 1};
            return true;
        }
    }
    return false;
}

static bool find_place(const lc_cpython_source *source, const lc_qt_named *known, place *out)
{
    uint64_t words[PRIVATE_BYTES / 8u];
    read_words(source, word(source, known->object + PRIVATE_AT), words, sizeof words);
    if (words[OWNER_AT / 8u] != known->object) {
        return false;
    }
    for (uint16_t at = OWNER_AT + 8u; at < PRIVATE_BYTES; at += 8u) {
        if (words[at / 8u] != 0 && words[at / 8u] % 8u == 0 && find_in_extra(source, words[at / 8u], known, out)) {
            out->extra_at = at;
            return true;
        }
    }
    return false;
}

void lc_qt_forget_object_names(void) { atomic_store_explicit(&learned, 0, memory_order_relaxed); }

bool lc_qt_learn_object_names(const lc_cpython_source *source, const lc_qt_named known[2])
{
    place places[2] = {{0}, {0}};
    uint64_t bits = 0;
    for (uint32_t i = 0; i < 2; i++) {
        if (known[i].units < 8u || known[i].units > UNITS_MAX || !find_place(source, &known[i], &places[i])) {
            return false;
        }
    }
    if (memcmp(&places[0], &places[1], sizeof places[0]) != 0) {
        return false;
    }
    memcpy(&bits, &places[0], sizeof bits);
    atomic_store_explicit(&learned, bits, memory_order_relaxed);
    return true;
}

/* ---- names ------------------------------------------------------------------------------- */

static uint32_t put_character(uint32_t character, char *into)
{
    if (character < 0x20u || character == 0x7Fu || (character >= 0xD800u && character < 0xE000u)) {
        character = '?';
    } else if (character == '"') {
        character = '\'';
    }
    if (character < 0x80u) {
        into[0] = (char)character;
        return 1;
    }
    const uint32_t bytes = character < 0x800u ? 2u : character < 0x10000u ? 3u : 4u;
    static const uint8_t marks[] = {0, 0, 0xC0u, 0xE0u, 0xF0u};
    for (uint32_t i = bytes - 1u; i > 0; i--) {
        into[i] = (char)(0x80u | (character & 0x3Fu));
        character >>= 6;
    }
    into[0] = (char)(marks[bytes] | character);
    return bytes;
}

static uint32_t to_utf_8(const uint16_t *units, uint32_t count, char *into)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < count && used + 4u <= LC_QT_OBJECT_NAME_BYTES; i++) {
        uint32_t character = units[i];
        if (character >= 0xD800u && character < 0xDC00u && i + 1u < count && units[i + 1u] >= 0xDC00u &&
            units[i + 1u] < 0xE000u) {
            character = 0x10000u + ((character - 0xD800u) << 10) + (units[++i] - 0xDC00u);
        }
        used += put_character(character, into + used);
    }
    return used;
}

/* Parts of Qt's widgets ("qt_scrollarea_viewport"), and windows of widgets without a name ("QMainWindowClassWindow"). */
static bool is_qt_s_own(const char *name, uint32_t bytes)
{
    static const char prefix[] = "qt_", suffix[] = "ClassWindow";
    const uint32_t front = sizeof prefix - 1u, back = sizeof suffix - 1u;
    return (bytes >= front && memcmp(name, prefix, front) == 0) ||
           (bytes >= back && memcmp(name + bytes - back, suffix, back) == 0);
}

uint32_t lc_qt_object_name(const lc_cpython_source *source, uint64_t object, char *into)
{
    const place where = place_now();
    const uint64_t inside = where.is_known ? word(source, object + PRIVATE_AT) : 0;
    const uint64_t extra =
        inside != 0 && word(source, inside + OWNER_AT) == object ? word(source, inside + where.extra_at) : 0;
    uint16_t units[UNITS_MAX];
    if (extra == 0 || extra % 8u != 0) {
        return 0;
    }
    const uint32_t count = read_units(source, string_at(source, extra + where.name_at, where.is_qt_5), units);
    const uint32_t bytes = to_utf_8(units, count, into);
    return is_qt_s_own(into, bytes) ? 0 : bytes;
}
