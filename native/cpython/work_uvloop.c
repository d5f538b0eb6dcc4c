#include "work_uvloop.h"

/* Whoever it belongs to, and Handle._run, which takes one for itself. Of an idle one there is the first at most, unless
 * the program keeps it. */
enum { REFERENCES_OF_RUNNING = 2 };
/* Handle._run gives its own back before it leaves the context, which is when the work counts as over. */
enum { REFERENCES_OF_ENDED = 1 };

enum { OBJECT_REFERENCES, OBJECT_TYPE, OBJECT_HEAD };

/* The one word that is the context; 0: none, or several. */
static uint32_t context_place(const lc_uvloop_object *object, uint64_t context)
{
    uint32_t found = 0;
    for (uint32_t i = OBJECT_HEAD; i < object->count; i++) {
        if (object->words[i] == context) {
            if (found != 0) {
                return 0;
            }
            found = i;
        }
    }
    return found;
}

static bool read_held(const lc_cpython_source *source, uint64_t address, lc_uvloop_type type, uint64_t context,
                      uint32_t references, lc_uvloop_object *out)
{
    const uint64_t words = type.bytes / 8u;
    out->count = (uint32_t)(words < LC_UVLOOP_OBJECT_WORDS ? words : LC_UVLOOP_OBJECT_WORDS);
    if (address % 8u != 0 || address < 4096u || address >> 48 != 0 || out->count <= OBJECT_HEAD || context == 0 ||
        !lc_read(source->reader, address, out->words, out->count * 8u)) {
        return false;
    }
    /* From 3.12 on the count is the lower half of its word. */
    if (out->words[OBJECT_TYPE] != type.address || (uint32_t)out->words[OBJECT_REFERENCES] < references) {
        return false;
    }
    out->context = context_place(out, context);
    return out->context != 0;
}

bool lc_uvloop_read(const lc_cpython_source *source, uint64_t address, lc_uvloop_type type, uint64_t context,
                    lc_uvloop_object *out)
{
    return read_held(source, address, type, context, REFERENCES_OF_RUNNING, out);
}

bool lc_uvloop_call_of(const lc_uvloop_object *handle, lc_uvloop_call *out)
{
    if (handle->context + LC_UVLOOP_FIRST >= handle->count) {
        return false;
    }
    const uint64_t *fields = &handle->words[handle->context];
    const uint32_t kind = (uint32_t)fields[LC_UVLOOP_KIND]; /* an int, in the word's lower half */
    if (kind < LC_UVLOOP_PLAIN || kind > LC_UVLOOP_KINDS) {
        return false;
    }
    *out = (lc_uvloop_call){.is_plain = kind == LC_UVLOOP_PLAIN};
    *(out->is_plain ? &out->callable : &out->name) = fields[out->is_plain ? LC_UVLOOP_FIRST : LC_UVLOOP_NAME];
    return true;
}

uint64_t lc_uvloop_work_object(const lc_cpython_source *source, uint64_t work, bool has_ended)
{
    const uint32_t references = has_ended ? REFERENCES_OF_ENDED : REFERENCES_OF_RUNNING;
    struct {
        uint64_t handle, context;
        lc_uvloop_type type;
    } note;
    _Static_assert(sizeof note == sizeof(lc_uvloop_note), "as it was written");
    lc_uvloop_object object;
    lc_uvloop_call call;
    if (!lc_read(source->reader, work & ~LC_WORK_UVLOOP_TAG_MASK, &note, sizeof note) ||
        !read_held(source, note.handle, note.type, note.context, references, &object) ||
        !lc_uvloop_call_of(&object, &call)) {
        return 0;
    }
    return call.is_plain ? call.callable : call.name;
}
