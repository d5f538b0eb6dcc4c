#include "cpython/walker/walker.h"

static lc_walk_code *code_of(lc_walker *walker, lc_reading *reading, uint64_t address, bool *is_new)
{
    uint32_t slot = (uint32_t)(lc_mix(1, address) >> 32) & (LC_WALK_CODE_SLOTS - 1);
    while (walker->code_slots[slot] != 0) { /* ends: there are more slots than codes */
        lc_walk_code *code = &reading->codes[walker->code_slots[slot] - 1];
        if (code->address == address) {
            *is_new = false;
            return code;
        }
        slot = (slot + 1) & (LC_WALK_CODE_SLOTS - 1);
    }
    if (reading->code_count == LC_WALK_FRAMES_MAX) {
        return NULL;
    }
    lc_walk_code *code = &reading->codes[reading->code_count++];
    walker->code_slots[slot] = (uint16_t)reading->code_count;
    *code = (lc_walk_code){.address = address};
    *is_new = true;
    return code;
}

/* The index of the code unit that a frame executes; -1: before the first. */
static bool unit_of(const lc_layout *layout, const lc_raw_frame *frame, const lc_walk_code *code,
                    int64_t *unit)
{
    const int64_t offset = (int64_t)(frame->instr - code->address - layout->code_bytes);
    *unit = offset / 2;
    return offset % 2 == 0 && *unit >= -1 && *unit < (int64_t)code->words.units;
}

/* Mirrors _PyFrame_IsIncomplete (pycore_frame.h, pycore_interpframe.h). */
static bool incomplete(const lc_layout *layout, const lc_raw_frame *frame, const lc_walk_code *code,
                       int64_t unit)
{
    return frame->owner != layout->owner_generator && unit < (int64_t)code->words.first_traceable;
}

static bool trusted(lc_cpython_source *source, lc_walk_code *code)
{
    code->entry = lc_code_cache_trusted(&source->walker->cache, code->address, code->deaths);
    if (code->entry == NULL) {
        return false;
    }
    code->trusted = true;
    code->words = code->entry->words;
    code->serial = code->entry->facts.serial;
    lc_walk_count(&source->counts.codes_trusted);
    return true;
}

/* The frames have been read: a code object of theirs that none has died in the place of since it was
 * proven is that one. Of any other, the words are read. */
static bool find_words(lc_cpython_source *source, lc_reading *reading, lc_walk_code *code)
{
    code->counted = reading->counted && lc_deaths_counted(source->deaths, code->address, &code->deaths);
    return (code->counted && trusted(source, code)) ||
           lc_code_words_read(source, &reading->snapshot, code->address, &code->words, &source->walker->plan);
}

static bool know_code(lc_cpython_source *source, lc_reading *reading, lc_walk_code *code)
{
    lc_walker *walker = source->walker;
    code->entry = lc_code_cache_prove(&walker->cache, source, &reading->snapshot, code->address, &code->words,
                                      &walker->plan);
    if (code->entry == NULL) {
        code->entry = lc_code_cache_load(&walker->cache, source, code->address, &code->words);
        code->fresh = true;
        reading->learned = true;
        lc_walk_count(&source->counts.codes_loaded);
    }
    if (code->entry != NULL) {
        code->serial = code->entry->facts.serial;
    }
    return code->entry != NULL;
}

bool lc_reading_find_codes(lc_cpython_source *source, lc_reading *reading)
{
    lc_walker *walker = source->walker;
    memset(walker->code_slots, 0, sizeof walker->code_slots);
    reading->code_count = 0;
    memset(reading->frames, 0, reading->chain.count * sizeof reading->frames[0]);
    for (uint32_t i = 0; i < reading->chain.count; i++) {
        const lc_raw_frame *raw = &reading->chain.frames[i];
        lc_walk_frame *frame = &reading->frames[i];
        if (raw->shim) {
            continue;
        }
        bool is_new = false;
        lc_walk_code *code = code_of(walker, reading, raw->code, &is_new);
        if (code == NULL || (is_new && !find_words(source, reading, code))) {
            return false;
        }
        int64_t unit = 0;
        if (!unit_of(&source->layout, raw, code, &unit)) {
            return false;
        }
        frame->shown = !incomplete(&source->layout, raw, code, unit);
        frame->unit = unit < 0 ? 0 : (uint32_t)unit;
        frame->code = (uint16_t)(code - reading->codes);
        if (frame->shown && code->entry == NULL && !know_code(source, reading, code)) {
            return false;
        }
    }
    return true;
}

void lc_reading_find_positions(lc_cpython_source *source, lc_reading *reading)
{
    for (uint32_t i = 0; i < reading->chain.count; i++) {
        lc_walk_frame *frame = &reading->frames[i];
        if (frame->shown) {
            frame->position =
                lc_code_cache_position(&source->walker->cache, source, reading->codes[frame->code].entry,
                                       frame->unit, &frame->fresh_position);
            reading->learned |= frame->fresh_position;
        }
    }
}

/* Also where positions of it have been read since. */
static bool still_trusted(lc_cpython_source *source, const lc_walk_code *code)
{
    uint64_t deaths = 0;
    return code->trusted && lc_deaths_counted(source->deaths, code->address, &deaths) &&
           deaths == code->deaths && code->entry->address == code->address &&
           code->entry->facts.serial == code->serial;
}

uint32_t lc_reading_trusted_from(lc_cpython_source *source, const lc_reading *reading, uint32_t from,
                                 uint32_t in_both)
{
    for (uint32_t i = in_both; i > from; i--) {
        const lc_walk_frame *frame = &reading->frames[i - 1];
        if (frame->shown && !still_trusted(source, &reading->codes[frame->code])) {
            return i;
        }
    }
    return from;
}

static bool has_count(const lc_reading *reading, uint64_t address, uint64_t deaths)
{
    for (uint32_t i = 0; i < reading->code_count; i++) {
        const lc_walk_code *code = &reading->codes[i];
        if (code->address == address) {
            return code->counted && code->deaths == deaths;
        }
    }
    return false;
}

static bool outlived(lc_cpython_source *source, const lc_reading *first, const lc_walk_code *code)
{
    uint64_t deaths = 0;
    return !code->counted || still_trusted(source, code) ||
           (!code->trusted && lc_deaths_counted(source->deaths, code->address, &deaths) &&
            has_count(first, code->address, deaths));
}

uint32_t lc_reading_outlived_from(lc_cpython_source *source, const lc_reading *first,
                                  const lc_reading *second, uint32_t from)
{
    for (uint32_t i = second->chain.count; i > from; i--) {
        const lc_walk_frame *frame = &second->frames[i - 1];
        if (frame->shown && !outlived(source, first, &second->codes[frame->code])) {
            return i;
        }
    }
    return from;
}

static bool still_proven(lc_cpython_source *source, const lc_walk_code *code, lc_snapshot *later)
{
    if (still_trusted(source, code)) {
        return true;
    }
    lc_code_words words;
    return lc_code_words_read(source, later, code->address, &words, NULL) &&
           lc_code_cache_prove(&source->walker->cache, source, later, code->address, &words, NULL) ==
               code->entry &&
           code->entry->facts.serial == code->serial;
}

bool lc_reading_settle(lc_cpython_source *source, lc_reading *reading, lc_snapshot *later)
{
    lc_code_cache *cache = &source->walker->cache;
    bool all = true;
    for (uint32_t i = 0; i < reading->code_count; i++) {
        lc_walk_code *code = &reading->codes[i];
        if (code->entry == NULL || still_proven(source, code, later)) {
            continue; /* NULL: of frames that are not shown */
        }
        if (code->fresh && code->entry->facts.serial == code->serial) {
            lc_code_cache_forget(cache, code->entry);
        }
        code->entry = NULL;
        all = false;
    }
    for (uint32_t i = 0; i < reading->chain.count; i++) {
        const lc_walk_frame *frame = &reading->frames[i];
        const lc_walk_code *code = &reading->codes[frame->code];
        if (frame->fresh_position && code->entry == NULL) {
            lc_code_cache_forget_position(cache, code->serial, frame->unit);
        }
    }
    return all;
}

void lc_reading_settle_now(lc_cpython_source *source, lc_reading *reading)
{
    if (!reading->learned) {
        return;
    }
    lc_snapshot *now = &source->walker->confirmation;
    lc_snapshot_take(now, source->reader, &source->walker->plan);
    lc_reading_settle(source, reading, now);
}

void lc_reading_trust(lc_reading *reading, uint32_t from, bool for_sure)
{
    for (uint32_t i = from; i < reading->chain.count; i++) {
        const lc_walk_frame *frame = &reading->frames[i];
        lc_walk_code *code = &reading->codes[frame->code];
        if (frame->shown && code->counted && !code->trusted && code->entry != NULL) {
            lc_code_cache_trust(code->entry, code->deaths, for_sure);
            code->counted = false; /* once a walk, however many frames run it */
        }
    }
}
