#include "cpython/walker/frame_values.h"

#include "cpython/objects/objects.h"
#include "cpython/walker/walker.h"

const lc_chain *lc_chain_of_thread(lc_cpython_source *source, uint64_t thread_state, uint32_t limit)
{
    static const lc_read_plan nothing;
    lc_walker *walker = source->walker;
    lc_snapshot_take(&walker->confirmation, source->reader, &nothing);
    const lc_chain_result result = lc_chain_follow(&walker->confirmation, &source->layout, thread_state,
                                                   limit, &walker->confirmation_chain, NULL);
    return result == LC_CHAIN_OK && !walker->confirmation_chain.moved ? &walker->confirmation_chain : NULL;
}

bool lc_frame_read(const lc_cpython_source *source, uint64_t address, lc_raw_frame *frame)
{
    const lc_layout *l = &source->layout;
    *frame = (lc_raw_frame){
        .address = address,
        .code = lc_word_at(source, address + l->frame_code) & ~(uint64_t)l->frame_tags,
        .instr = lc_word_at(source, address + l->frame_instr),
    };
    return frame->code != 0 && frame->instr != 0;
}

bool lc_frame_shape_read(const lc_cpython_source *source, const lc_raw_frame *frame, lc_frame_shape *shape)
{
    const lc_layout *l = &source->layout;
    uint8_t code[LC_CODE_HEADER_MAX];
    if (frame->code % 8 != 0 || !lc_read(source->reader, frame->code, code, l->code_bytes) ||
        lc_u64_at(code, l->object_type) != source->at.code_type) {
        return false;
    }
    shape->exceptions = lc_u64_at(code, l->code_exceptions);
    shape->filename = lc_u64_at(code, l->code_filename);
    shape->qualname = lc_u64_at(code, l->code_qualname);
    shape->locals = lc_u32_at(code, l->code_locals);
    shape->stack = lc_u32_at(code, l->code_stack_size);
    return shape->locals < UINT16_MAX && shape->stack < UINT16_MAX;
}

bool lc_frame_slots_read(const lc_cpython_source *source, const lc_raw_frame *frame, uint32_t first,
                         uint32_t count, uint64_t *slots)
{
    const lc_layout *l = &source->layout;
    const uint64_t at = frame->address + l->frame_bytes + 8u * (uint64_t)first;
    if (count == 0 || count > LC_FRAME_SLOTS_MAX ||
        !lc_read(source->reader, at, slots, count * sizeof slots[0])) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        slots[i] &= ~(uint64_t)l->frame_tags;
    }
    return true;
}

/* ---- exception tables (Objects/exception_handling_notes.txt) -------------------------------------- */

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
        if (!varint(&c, &start) || !varint(&c, &length) || !varint(&c, &handler) ||
            !varint(&c, &depth_and_lasti) || start > unit) { /* entries are sorted and do not overlap */
            return 0;
        }
        if (unit - start < length) {
            return depth_and_lasti >> 1;
        }
    }
    return 0;
}

uint32_t lc_frame_stack_kept(const lc_cpython_source *source, const lc_raw_frame *frame,
                             const lc_frame_shape *shape)
{
    const lc_layout *l = &source->layout;
    uint8_t table[LC_EXCEPTION_TABLE_MAX];
    const uint64_t offset = frame->instr - frame->code - l->code_bytes; /* wraps if it is before the code */
    const uint64_t units = lc_word_at(source, frame->code + l->var_size);
    if (lc_type_at(source, shape->exceptions) != source->at.bytes_type || offset / 2 >= units) {
        return 0;
    }
    const uint64_t bytes = lc_word_at(source, shape->exceptions + l->var_size);
    if (bytes == 0 || bytes > sizeof table ||
        !lc_read(source->reader, shape->exceptions + l->bytes_data, table, (size_t)bytes)) {
        return 0;
    }
    const uint32_t depth = lc_exception_depth(table, (uint32_t)bytes, (uint32_t)(offset / 2));
    return depth <= shape->stack ? depth : 0;
}

uint32_t lc_frame_stack_used(const lc_cpython_source *source, const lc_raw_frame *frame,
                             const lc_frame_shape *shape)
{
    const lc_layout *l = &source->layout;
    if (l->frame_stack_bytes != 8) {
        return 0;
    }
    const uint64_t base = frame->address + l->frame_bytes + 8u * (uint64_t)shape->locals;
    const uint64_t used = (frame->stack - base) / 8; /* wraps if it points before the base */
    return frame->stack % 8 == 0 && used <= shape->stack ? (uint32_t)used : 0;
}

bool lc_str_is(const lc_cpython_source *source, uint64_t address, const char *text)
{
    char bytes[LC_STRING_MAX];
    lc_str_value value = {.bytes = bytes};
    return lc_read_str(source, address, source->walker->scratch, &value) && value.length == strlen(text) &&
           memcmp(bytes, text, value.length) == 0;
}

bool lc_str_ends(const lc_cpython_source *source, uint64_t address, const char *end)
{
    char bytes[LC_STRING_MAX];
    lc_str_value value = {.bytes = bytes};
    const size_t length = strlen(end);
    return lc_read_str(source, address, source->walker->scratch, &value) && value.length >= length &&
           memcmp(bytes + value.length - length, end, length) == 0;
}

bool lc_is_bootstrap(const lc_cpython_source *source, const lc_frame_shape *shape, const char *qualname)
{
    return lc_str_is(source, shape->qualname, qualname) &&
           lc_str_is(source, shape->filename, "<frozen importlib._bootstrap>");
}
