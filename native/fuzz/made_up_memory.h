/* A made-up interpreter in made-up memory: a thread with frames, code objects, strings and line tables
 * laid out by a column of layout.h, and a memory reader over it that tests and fuzz targets can make
 * lie: memory that is not there, and memory that changes while it is read. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cpython/source/cpython_source.h"
#include "core/memory/memory_reader.h"

#define MADE_UP_BASE UINT64_C(0x10000000)
#define MADE_UP_BYTES (256u * 1024u)

/* Where things are, from the base. */
enum {
    MADE_UP_RUNTIME = 0x0,
    MADE_UP_INTERP = 0x1000,
    MADE_UP_THREAD = 0x4000,
    MADE_UP_CFRAME = 0x4400,
    MADE_UP_SHIM = 0x4800,
    MADE_UP_GIL = 0x4C00,
    MADE_UP_FRAMES = 0x5000, /* innermost frame has the highest number */
    MADE_UP_FRAME_STRIDE = 0x80,
    MADE_UP_FRAMES_MAX = 640,
    MADE_UP_CODES = 0x20000,
    MADE_UP_CODE_STRIDE = 0x200,
    MADE_UP_CODES_MAX = 16,
    MADE_UP_STRINGS = 0x28000,
    MADE_UP_STRING_STRIDE = 0x100,
    MADE_UP_TABLES = 0x30000,
    MADE_UP_TABLE_STRIDE = 0x100,
    MADE_UP_TYPES = 0x3F000, /* addresses only: types are never read */
};

#define MADE_UP_UNITS 8u
#define MADE_UP_TID 77u

typedef struct made_up_memory made_up_memory;
struct made_up_memory {
    lc_memory_reader reader; /* first: the reader's functions are given its address */
    const lc_layout *layout;
    uint64_t reads;                            /* so far */
    void (*before_read)(made_up_memory *self); /* may change the memory; NULL: none does */
    const void *script;                        /* for before_read */
    uint8_t bytes[MADE_UP_BYTES];
};

static inline uint64_t made_up_at(uint64_t offset) { return MADE_UP_BASE + offset; }

static inline void made_up_put(made_up_memory *m, uint64_t offset, uint64_t value, size_t bytes)
{
    if (offset <= MADE_UP_BYTES - bytes) {
        memcpy(m->bytes + offset, &value, bytes);
    }
}

static size_t made_up_read(const lc_memory_reader *self, const lc_read_request *requests, size_t count)
{
    made_up_memory *m = (made_up_memory *)(uintptr_t)self;
    for (size_t i = 0; i < count; i++) {
        m->reads++;
        if (m->before_read != NULL) {
            m->before_read(m);
        }
        const uint64_t offset = requests[i].address - MADE_UP_BASE;
        if (offset > MADE_UP_BYTES || requests[i].bytes > MADE_UP_BYTES - offset) {
            return i;
        }
        memcpy(requests[i].into, m->bytes + offset, requests[i].bytes);
    }
    return count;
}

static inline lc_interpreter_addresses made_up_addresses(void)
{
    return (lc_interpreter_addresses){
        .runtime = made_up_at(MADE_UP_RUNTIME),
        .interp = made_up_at(MADE_UP_INTERP),
        .code_type = made_up_at(MADE_UP_TYPES),
        .str_type = made_up_at(MADE_UP_TYPES + 0x10),
        .bytes_type = made_up_at(MADE_UP_TYPES + 0x20),
        .int_type = made_up_at(MADE_UP_TYPES + 0x30),
        .function_type = made_up_at(MADE_UP_TYPES + 0x40),
        .method_type = made_up_at(MADE_UP_TYPES + 0x50),
        .cfunction_type = made_up_at(MADE_UP_TYPES + 0x60),
        .coroutine_type = made_up_at(MADE_UP_TYPES + 0x70),
        .generator_type = made_up_at(MADE_UP_TYPES + 0x80),
    };
}

static inline uint64_t made_up_str(made_up_memory *m, uint32_t number, const char *text)
{
    const lc_layout *l = m->layout;
    const uint64_t at = MADE_UP_STRINGS + (uint64_t)number * MADE_UP_STRING_STRIDE;
    const uint32_t state = 1u << l->str_kind_shift | 1u << l->str_compact_shift | 1u << l->str_ascii_shift;
    made_up_put(m, at + l->object_type, made_up_addresses().str_type, 8);
    made_up_put(m, at + l->str_length, strlen(text), 8);
    made_up_put(m, at + l->str_state, state, 4);
    memcpy(m->bytes + at + l->str_ascii_data, text, strlen(text));
    return made_up_at(at);
}

/* Every code unit of code N is on line 10 * (N + 1), columns 1 to 5. */
static inline uint64_t made_up_table(made_up_memory *m, uint32_t number)
{
    const lc_layout *l = m->layout;
    const uint64_t at = MADE_UP_TABLES + (uint64_t)number * MADE_UP_TABLE_STRIDE;
    made_up_put(m, at + l->object_type, made_up_addresses().bytes_type, 8);
    made_up_put(m, at + l->var_size, 3, 8);
    made_up_put(m, at + l->bytes_data, 0x80u | 10u << 3 | (MADE_UP_UNITS - 1), 1);
    made_up_put(m, at + l->bytes_data + 1, 0, 1);
    made_up_put(m, at + l->bytes_data + 2, 4, 1);
    return made_up_at(at);
}

static inline uint64_t made_up_code(made_up_memory *m, uint32_t number, const char *qualname,
                                    uint32_t version)
{
    const lc_layout *l = m->layout;
    const uint64_t at = MADE_UP_CODES + (uint64_t)number * MADE_UP_CODE_STRIDE;
    made_up_put(m, at + l->object_type, made_up_addresses().code_type, 8);
    made_up_put(m, at + l->var_size, MADE_UP_UNITS, 8);
    made_up_put(m, at + l->code_filename, made_up_str(m, number * 2, "made_up.py"), 8);
    made_up_put(m, at + l->code_qualname, made_up_str(m, number * 2 + 1, qualname), 8);
    made_up_put(m, at + l->code_linetable, made_up_table(m, number), 8);
    made_up_put(m, at + l->code_first_line, 10u * (number + 1), 4);
    made_up_put(m, at + l->code_first_traceable, 1, 4);
    made_up_put(m, at + l->code_flags, 3, 4);
    if (l->code_version != LC_ABSENT) {
        made_up_put(m, at + l->code_version, version, 4);
    }
    return made_up_at(at);
}

static inline uint64_t made_up_frame_address(uint32_t number)
{
    return made_up_at(MADE_UP_FRAMES + (uint64_t)number * MADE_UP_FRAME_STRIDE);
}

static inline void made_up_frame(made_up_memory *m, uint32_t number, uint64_t previous, uint32_t code,
                                 uint32_t unit)
{
    const lc_layout *l = m->layout;
    const uint64_t at = made_up_frame_address(number) - MADE_UP_BASE;
    const uint64_t code_at = made_up_at(MADE_UP_CODES + (uint64_t)code * MADE_UP_CODE_STRIDE);
    made_up_put(m, at + l->frame_previous, previous, 8);
    made_up_put(m, at + l->frame_code, code_at | (l->frame_tags & 1u), 8);
    made_up_put(m, at + l->frame_instr, code_at + l->code_bytes + unit * 2, 8);
    made_up_put(m, at + l->frame_owner, 0, 1);
}

static inline void made_up_top(made_up_memory *m, uint64_t frame)
{
    const lc_layout *l = m->layout;
    if (l->cframe_frame != LC_ABSENT) {
        made_up_put(m, MADE_UP_THREAD + l->thread_frame, made_up_at(MADE_UP_CFRAME), 8);
        made_up_put(m, MADE_UP_CFRAME + l->cframe_frame, frame, 8);
    } else {
        made_up_put(m, MADE_UP_THREAD + l->thread_frame, frame, 8);
    }
}

/* A thread that runs `depth` frames of four functions, called in turn. */
static inline void made_up_interpreter(made_up_memory *m, uint64_t version_hex, uint32_t depth)
{
    static const char *const names[] = {"first", "second", "third", "fourth"};
    memset(m, 0, sizeof *m);
    m->reader.read = made_up_read;
    m->layout = lc_layout_find(version_hex);
    const lc_layout *l = m->layout;
    made_up_put(m, MADE_UP_RUNTIME + l->runtime_interpreters, made_up_at(MADE_UP_INTERP), 8);
    made_up_put(m, MADE_UP_INTERP + l->interp_threads, made_up_at(MADE_UP_THREAD), 8);
    made_up_put(m, MADE_UP_THREAD + l->thread_interp, made_up_at(MADE_UP_INTERP), 8);
    made_up_put(m, MADE_UP_THREAD + l->thread_native_id, MADE_UP_TID, 8);
    const uint64_t gil = l->interp_gil == LC_ABSENT ? MADE_UP_RUNTIME + l->runtime_gil : MADE_UP_GIL;
    if (l->interp_gil != LC_ABSENT) {
        made_up_put(m, MADE_UP_INTERP + l->interp_gil, made_up_at(MADE_UP_GIL), 8);
    }
    made_up_put(m, gil + l->gil_last_holder, made_up_at(MADE_UP_THREAD), 8);
    made_up_put(m, gil + l->gil_locked, 1, 4);
    for (uint32_t i = 0; i < 4; i++) {
        made_up_code(m, i, names[i], 100 + i);
    }
    uint64_t previous = 0;
    if (l->shim_ends_chain) {
        made_up_put(m, MADE_UP_SHIM + l->frame_owner, l->owner_shim, 1);
        previous = made_up_at(MADE_UP_SHIM);
    }
    for (uint32_t i = 0; i < depth && i < MADE_UP_FRAMES_MAX; i++) {
        made_up_frame(m, i, previous, i % 4, 2 + i % 4);
        previous = made_up_frame_address(i);
    }
    if (depth > 0 && l->frame_stack_bytes == 4) { /* the innermost one executes */
        made_up_put(m, previous - MADE_UP_BASE + l->frame_stack, UINT32_MAX, 4);
    }
    made_up_top(m, previous);
}
