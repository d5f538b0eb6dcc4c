#include "cpython/source/outside.h"

#include "cpython/walker/snapshot.h"
#include "cpython/gil/threads.h"

bool lc_outside_open(lc_cpython_source *source, const lc_memory_reader *reader, uint64_t version_hex,
                     const lc_outside_addresses *addresses, const char **why_not)
{
    *source = (lc_cpython_source){0};
    *why_not = NULL;
    const lc_layout *known = lc_layout_find(version_hex);
    if (known == NULL) {
        *why_not = "this version of CPython is not known to loopcanary (3.11 to 3.15 are)";
        return false;
    }
    lc_layout layout = *known;
    if (!lc_debug_offsets_apply(&layout, reader, addresses->at.runtime, version_hex, why_not)) {
        return false;
    }
    if (!lc_cpython_source_init(source, reader, &layout, &addresses->at)) {
        *why_not = "no memory for the native walker";
        return false;
    }
    return true;
}

uint32_t lc_outside_interpreters(const lc_cpython_source *source, uint64_t *out, uint32_t room)
{
    const lc_layout *l = &source->layout;
    uint64_t each = 0;
    uint32_t count = 0;
    bool readable = lc_read(source->reader, source->at.runtime + l->runtime_interpreters, &each, 8);
    while (readable && each != 0 && count < room && count < LC_INTERPRETERS_MAX) {
        out[count++] = each;
        readable = lc_read(source->reader, each + l->interp_next, &each, 8);
    }
    return count;
}
