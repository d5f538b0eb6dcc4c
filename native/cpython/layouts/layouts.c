#include "cpython/layouts/layout.h"

#define PICK_311(name, v311, v312, v313, v314, v315) .name = v311,
#define PICK_312(name, v311, v312, v313, v314, v315) .name = v312,
#define PICK_313(name, v311, v312, v313, v314, v315) .name = v313,
#define PICK_314(name, v311, v312, v313, v314, v315) .name = v314,
#define PICK_315(name, v311, v312, v313, v314, v315) .name = v315,

static const lc_layout layouts[] = {
    {.version = 0x030b, LC_LAYOUT_TABLE(PICK_311)}, {.version = 0x030c, LC_LAYOUT_TABLE(PICK_312)},
    {.version = 0x030d, LC_LAYOUT_TABLE(PICK_313)}, {.version = 0x030e, LC_LAYOUT_TABLE(PICK_314)},
    {.version = 0x030f, LC_LAYOUT_TABLE(PICK_315)},
};

#define AT_MOST(v311, v312, v313, v314, v315, most)                                                          \
    ((v311) <= (most) && (v312) <= (most) && (v313) <= (most) && (v314) <= (most) && (v315) <= (most))
#define FITS_frame_bytes LC_FRAME_BYTES_MAX
#define FITS_code_bytes LC_CODE_HEADER_MAX
#define FITS_thread_native_id (LC_THREAD_HEADER_MAX - 8)
#define FITS_gil_locked (LC_GIL_HEADER_MAX - 4)

enum {
#define ENUMERATE(name, v311, v312, v313, v314, v315)                                                        \
    row_##name##_311 = (int)v311, row_##name##_312 = (int)v312, row_##name##_313 = (int)v313,                \
    row_##name##_314 = (int)v314, row_##name##_315 = (int)v315,
    LC_LAYOUT_TABLE(ENUMERATE)
};

#define ASSERT_FITS(name)                                                                                    \
    _Static_assert(AT_MOST(row_##name##_311, row_##name##_312, row_##name##_313, row_##name##_314,           \
                           row_##name##_315, (int)FITS_##name),                                              \
                   #name " fits its buffer")
ASSERT_FITS(frame_bytes);
ASSERT_FITS(code_bytes);
ASSERT_FITS(thread_native_id);
ASSERT_FITS(gil_locked);

#define RELEASE_LEVEL_CANDIDATE 0xC0u /* layouts are frozen from the first release candidate on */

const lc_layout *lc_layout_find(uint64_t version_hex)
{
    if ((version_hex & 0xF0u) < RELEASE_LEVEL_CANDIDATE) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        if (layouts[i].version == version_hex >> 16) {
            return &layouts[i];
        }
    }
    return NULL;
}

bool lc_layout_sane(const lc_layout *l)
{
    const uint32_t last_in_frame = l->frame_bytes - 8;
    const uint32_t last_in_code = l->code_bytes - 8;
    return l->thread_native_id <= LC_THREAD_HEADER_MAX - 8 && l->thread_frame <= l->thread_native_id &&
           l->thread_interp <= l->thread_native_id && l->thread_next <= l->thread_native_id &&
           l->thread_ident <= LC_THREAD_HEADER_MAX - 8 && l->frame_bytes >= 8 &&
           l->frame_bytes <= LC_FRAME_BYTES_MAX && l->frame_code <= last_in_frame &&
           l->frame_previous <= last_in_frame && l->frame_instr <= last_in_frame &&
           l->frame_stack <= last_in_frame && l->frame_owner < l->frame_bytes && l->code_bytes >= 8 &&
           l->code_bytes <= LC_CODE_HEADER_MAX && l->code_filename <= last_in_code &&
           l->code_qualname <= last_in_code && l->code_linetable <= last_in_code &&
           l->code_first_line <= last_in_code && l->code_exceptions <= last_in_code &&
           l->code_stack_size <= last_in_code && l->code_locals <= last_in_code &&
           l->code_flags <= last_in_code && l->code_first_traceable <= last_in_code &&
           l->gil_locked <= LC_GIL_HEADER_MAX - 4 && l->gil_last_holder <= LC_GIL_HEADER_MAX - 8;
}
