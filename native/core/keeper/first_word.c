#include "core/keeper/courier.h"

#include <stdio.h>
#include <string.h>

#include "core/lane/lane.h"

typedef struct {
    const char *bytes;
    size_t length;
} part;

static const void *in_heap(const lc_slot *slot, uint32_t offset) { return (const uint8_t *)slot + offset; }

static part text_of(const lc_slot *slot, lc_ref ref) { return (part){in_heap(slot, ref.offset), ref.bytes}; }

/* NULL: no sample has one. */
static const lc_stack_entry *last_stack(const lc_slot *slot)
{
    for (uint64_t left = LC_LOAD(slot->sample_count); left > 0; left--) {
        const uint32_t stack = slot->samples[left - 1u].stack;
        if (stack != LC_NO_REF) {
            return in_heap(slot, stack);
        }
    }
    return NULL;
}

/* What of the path lies below the folder, without the separator; {NULL, 0}: it does not. */
static part below(part path, const char *folder)
{
    const size_t length = strlen(folder);
    if (path.length > length && memcmp(path.bytes, folder, length) == 0 && path.bytes[length] == '/') {
        return (part){path.bytes + length + 1u, path.length - length - 1u};
    }
    return (part){NULL, 0};
}

static bool is_of_library(part file, char *const folders[])
{
    static const char frozen[] = "<frozen ";
    bool found = file.length >= sizeof frozen - 1u && memcmp(file.bytes, frozen, sizeof frozen - 1u) == 0;
    for (char *const *folder = folders; *folder != NULL && !found; folder++) {
        found = below(file, *folder).bytes != NULL;
    }
    return found;
}

static const lc_frame_entry *shown_frame(const lc_slot *slot, const lc_stack_entry *stack,
                                         char *const library[])
{
    const lc_frame_entry *const frames = (const lc_frame_entry *)(stack + 1);
    for (uint32_t i = 0; i < stack->frames; i++) {
        const lc_code_entry *const code = in_heap(slot, frames[i].code);
        if (!is_of_library(text_of(slot, code->filename), library)) {
            return &frames[i];
        }
    }
    return frames;
}

/* How many bytes at the text's start a terminal must not get: control characters (U+0000 to U+001F, U+007F
 * to U+009F), and those that break lines or change the direction of what follows (U+2000 to U+207F,
 * U+061C). 0: none. */
static size_t unprintable(const unsigned char *text, size_t length)
{
    const unsigned char second = length > 1u ? text[1] : 0u;
    if (text[0] < 0x20u || text[0] == 0x7Fu) {
        return 1;
    }
    if ((text[0] == 0xC2u && second >= 0x80u && second < 0xA0u) || (text[0] == 0xD8u && second == 0x9Cu)) {
        return 2;
    }
    return text[0] == 0xE2u && length > 2u && (second == 0x80u || second == 0x81u) ? 3u : 0u;
}

static size_t put(char *text, part added)
{
    size_t used = 0;
    for (size_t i = 0; i < added.length;) {
        const size_t hidden = unprintable((const unsigned char *)added.bytes + i, added.length - i);
        text[used++] = hidden > 0 ? '?' : added.bytes[i];
        i += hidden > 0 ? hidden : 1u;
    }
    return used;
}

size_t lc_first_word(const lc_slot *slot, uint64_t busy_ns, char *const folders[], char *text)
{
    const uint64_t tenths = busy_ns / 100000000u;
    const lc_stack_entry *const stack = last_stack(slot);
    size_t used = (size_t)sprintf(text, "[loopcanary] blocked for %llu.%llu s",
                                  (unsigned long long)(tenths / 10u), (unsigned long long)(tenths % 10u));
    if (stack != NULL && stack->frames > 0) {
        const lc_frame_entry *const frame = shown_frame(slot, stack, folders + 1);
        const lc_code_entry *const code = in_heap(slot, frame->code);
        const part file = text_of(slot, code->filename), inside = below(file, folders[0]);
        used += (size_t)sprintf(text + used, " in ");
        used += put(text + used, inside.bytes != NULL ? inside : file);
        used += (size_t)sprintf(text + used, frame->line != 0 ? ":%u, " : ", ", (unsigned)frame->line);
        used += put(text + used, text_of(slot, code->qualname));
    }
    text[used++] = '\n';
    return used;
}
