#include "cpython/objects/objects.h"

#include "cpython/objects/strings.h"

#define STR_FIRST_READ 192u /* header and the whole of most names, in one read */

static bool aligned(uint64_t address) { return address != 0 && address % 8 == 0; }

uint32_t lc_read_c_string(const lc_cpython_source *source, uint64_t address, char *into, uint32_t room)
{
    const uint32_t bytes = lc_read_text(source->reader, address, into, room);
    return bytes < room ? bytes : 0;
}

bool lc_c_string_is(const lc_cpython_source *source, uint64_t address, const char *text)
{
    char read[32];
    const size_t length = strlen(text);
    return address != 0 && lc_read_c_string(source, address, read, sizeof read) == length &&
           memcmp(read, text, length) == 0;
}

static uint64_t hash_bytes(const uint8_t *bytes, uint32_t count)
{
    /* Four at a time: a multiplication waits for the one before it. */
    uint64_t lanes[4] = {count, 1, 2, 3};
    while (count >= 32) {
        for (uint32_t i = 0; i < 4; i++) {
            lanes[i] = lc_mix(lanes[i], lc_u64_at(bytes, 8 * i));
        }
        bytes += 32;
        count -= 32;
    }
    while (count >= 8) {
        lanes[0] = lc_mix(lanes[0], lc_u64_at(bytes, 0));
        bytes += 8;
        count -= 8;
    }
    uint64_t rest = 0;
    memcpy(&rest, bytes, count);
    const uint64_t hash = lc_mix(lc_mix(lanes[0], lanes[1]), lc_mix(lanes[2], lanes[3]));
    return lc_mix(hash, rest) | 1u; /* 0 means none */
}

typedef struct {
    uint64_t length; /* characters */
    uint32_t kind;   /* bytes a character */
    uint32_t data;   /* offset of the characters in the object */
    uint32_t shape;  /* kind, compact and ascii bits of the state */
} str_header;

static bool decode_header(const lc_cpython_source *source, const uint8_t *object, str_header *h)
{
    const lc_layout *l = &source->layout;
    if (lc_u64_at(object, l->object_type) != source->at.str_type) {
        return false;
    }
    const uint32_t state = lc_u32_at(object, l->str_state);
    const bool compact = state >> l->str_compact_shift & 1u;
    const bool ascii = state >> l->str_ascii_shift & 1u;
    h->length = lc_u64_at(object, l->str_length);
    h->kind = state >> l->str_kind_shift & 7u;
    h->data = ascii ? l->str_ascii_data : l->str_compact_data;
    h->shape = h->kind | (uint32_t)ascii << 3;
    /* Not compact: of a subclass, or made by C code of Python 3.11's wchar API; not names of code. */
    return compact && (h->kind == 1 || h->kind == 2 || h->kind == 4) && (!ascii || h->kind == 1) &&
           h->length < UINT64_C(1) << 40;
}

static uint32_t shown_bytes(const str_header *h)
{
    const uint64_t characters = h->length < LC_STRING_MAX ? h->length : LC_STRING_MAX;
    return h->data + (uint32_t)characters * h->kind;
}

lc_value_print lc_print_of_str(const lc_cpython_source *source, const uint8_t *object, uint32_t bytes)
{
    str_header h;
    if (bytes < source->layout.str_ascii_data || !decode_header(source, object, &h) ||
        shown_bytes(&h) != bytes) {
        return (lc_value_print){.bytes = bytes, .hash = 0};
    }
    const uint64_t hash = lc_mix(lc_mix(h.shape, h.length), hash_bytes(object + h.data, bytes - h.data));
    return (lc_value_print){.bytes = bytes, .hash = hash | 1u};
}

bool lc_read_str(const lc_cpython_source *source, uint64_t address, uint8_t *scratch, lc_str_value *value)
{
    const lc_layout *l = &source->layout;
    value->length = 0;
    value->print = (lc_value_print){0};
    /* The object may end right before an unmapped page: first what surely is there. */
    uint32_t have = STR_FIRST_READ;
    if (!aligned(address)) {
        return false;
    }
    if (!lc_read(source->reader, address, scratch, have)) {
        have = l->str_ascii_data;
        if (!lc_read(source->reader, address, scratch, have)) {
            return false;
        }
    }
    str_header h;
    if (!decode_header(source, scratch, &h)) {
        return false;
    }
    const uint32_t whole = shown_bytes(&h);
    if (whole > have && !lc_read(source->reader, address + have, scratch + have, whole - have)) {
        return false;
    }
    const size_t characters = (whole - h.data) / h.kind;
    value->length =
        (uint32_t)lc_utf8_from_pep393(scratch + h.data, h.kind, characters, value->bytes, LC_STRING_MAX);
    value->print = lc_print_of_str(source, scratch, whole);
    return value->print.hash != 0;
}

lc_value_print lc_print_of_bytes(const lc_cpython_source *source, const uint8_t *object, uint32_t bytes)
{
    const lc_layout *l = &source->layout;
    if (bytes < l->bytes_data || lc_u64_at(object, l->object_type) != source->at.bytes_type) {
        return (lc_value_print){.bytes = bytes, .hash = 0};
    }
    const uint64_t hash =
        lc_mix(lc_u64_at(object, l->var_size), hash_bytes(object + l->bytes_data, bytes - l->bytes_data));
    return (lc_value_print){.bytes = bytes, .hash = hash | 1u};
}

bool lc_read_bytes(const lc_cpython_source *source, uint64_t address, uint8_t *into, uint32_t room,
                   uint32_t *length)
{
    const lc_layout *l = &source->layout;
    uint8_t header[LC_THREAD_HEADER_MAX];
    if (!aligned(address) || !lc_read(source->reader, address, header, l->bytes_data) ||
        lc_u64_at(header, l->object_type) != source->at.bytes_type) {
        return false;
    }
    const uint64_t size = lc_u64_at(header, l->var_size);
    if (size > room || !lc_read(source->reader, address + l->bytes_data, into, (size_t)size)) {
        return false;
    }
    *length = (uint32_t)size;
    return true;
}

bool lc_read_int(const lc_cpython_source *source, uint64_t address, uint64_t *value)
{
    const lc_layout *l = &source->layout;
    uint8_t object[64];
    if (!aligned(address) || !lc_read(source->reader, address, object, l->long_digits) ||
        lc_u64_at(object, l->object_type) != source->at.int_type) {
        return false;
    }
    const uint64_t tag = lc_u64_at(object, l->long_tag);
    const uint64_t digits = tag >> l->long_digits_shift;
    if ((tag & l->long_sign_mask) != 0 || digits == 0 || digits > 2) {
        return false; /* zero, negative, or absurd for what this is used for */
    }
    uint32_t digit[2] = {0, 0}; /* of 30 bits */
    if (!lc_read(source->reader, address + l->long_digits, digit, (size_t)digits * 4)) {
        return false;
    }
    *value = (uint64_t)digit[1] << 30 | digit[0];
    return true;
}
