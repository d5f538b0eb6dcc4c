#include "cpython/walker/code_cache.h"

#define PROBES 8u
#define LINETABLE_PRINT_BYTES 256u
#define PROOFS_ENOUGH 2u

static uint32_t place(uint64_t address)
{
    return (uint32_t)(lc_mix(0, address) >> 32) & (LC_CODE_CACHE_SIZE - 1);
}

bool lc_code_words_read(const lc_cpython_source *source, lc_snapshot *snapshot, uint64_t address,
                        lc_code_words *words, lc_read_plan *plan)
{
    const lc_layout *l = &source->layout;
    lc_read_plan_add_object(plan, address, l->code_bytes);
    const uint8_t *header = lc_snapshot_get(snapshot, address, l->code_bytes);
    if (header == NULL || lc_u64_at(header, l->object_type) != source->at.code_type) {
        return false;
    }
    *words = (lc_code_words){
        .units = lc_u64_at(header, l->var_size),
        .filename = lc_u64_at(header, l->code_filename),
        .qualname = lc_u64_at(header, l->code_qualname),
        .linetable = lc_u64_at(header, l->code_linetable),
        .flags = lc_u32_at(header, l->code_flags),
        .first_line = lc_u32_at(header, l->code_first_line),
        .first_traceable = lc_u32_at(header, l->code_first_traceable),
        .version = l->code_version == LC_ABSENT ? 0 : lc_u32_at(header, l->code_version),
    };
    return words->units > 0 && words->units <= INT32_MAX;
}

static bool same_words(const lc_code_words *a, const lc_code_words *b)
{
    return a->units == b->units && a->filename == b->filename && a->qualname == b->qualname &&
           a->linetable == b->linetable && a->flags == b->flags && a->first_line == b->first_line &&
           a->first_traceable == b->first_traceable && a->version == b->version;
}

static bool same_str(const lc_cpython_source *source, lc_snapshot *snapshot, uint64_t address,
                     lc_value_print print, lc_read_plan *plan)
{
    lc_read_plan_add_object(plan, address, print.bytes);
    const uint8_t *object = lc_snapshot_get(snapshot, address, print.bytes);
    return object != NULL && lc_print_of_str(source, object, print.bytes).hash == print.hash;
}

/* Most code of a stack is of a few files, in a row: a name that this snapshot has just proven needs no
 * second look. */
static bool same_filename(const lc_cpython_source *source, lc_snapshot *snapshot, uint64_t address,
                          lc_value_print print, lc_read_plan *plan)
{
    if (address == snapshot->proven_str && print.hash == snapshot->proven_str_hash) {
        return true;
    }
    if (!same_str(source, snapshot, address, print, plan)) {
        return false;
    }
    snapshot->proven_str = address;
    snapshot->proven_str_hash = print.hash;
    return true;
}

static bool same_bytes(const lc_cpython_source *source, lc_snapshot *snapshot, uint64_t address,
                       lc_value_print print, lc_read_plan *plan)
{
    lc_read_plan_add_object(plan, address, print.bytes);
    const uint8_t *object = lc_snapshot_get(snapshot, address, print.bytes);
    return object != NULL && lc_print_of_bytes(source, object, print.bytes).hash == print.hash;
}

static lc_known_code *find(lc_code_cache *cache, uint64_t address)
{
    for (uint32_t i = 0; i < PROBES; i++) {
        const uint32_t index = (place(address) + i) & (LC_CODE_CACHE_SIZE - 1);
        if (cache->keys[index] == address) {
            return &cache->entries[index];
        }
    }
    return NULL;
}

lc_known_code *lc_code_cache_trusted(lc_code_cache *cache, uint64_t address, uint64_t deaths)
{
    lc_known_code *entry = find(cache, address);
    if (entry == NULL || entry->proofs < PROOFS_ENOUGH || entry->deaths != deaths) {
        return NULL;
    }
    entry->used_at = cache->walk;
    return entry;
}

void lc_code_cache_trust(lc_known_code *entry, uint64_t deaths, bool for_sure)
{
    if (entry->deaths != deaths) {
        entry->deaths = deaths;
        entry->proofs = 0;
    }
    entry->proofs += for_sure ? PROOFS_ENOUGH : entry->proofs < PROOFS_ENOUGH;
}

lc_known_code *lc_code_cache_prove(lc_code_cache *cache, const lc_cpython_source *source,
                                   lc_snapshot *snapshot, uint64_t address, const lc_code_words *words,
                                   lc_read_plan *plan)
{
    lc_known_code *entry = find(cache, address);
    if (entry == NULL || !same_words(&entry->words, words)) {
        return NULL;
    }
    if (words->version == 0 &&
        (!same_str(source, snapshot, words->qualname, entry->qualname_print, plan) ||
         !same_filename(source, snapshot, words->filename, entry->filename_print, plan) ||
         !same_bytes(source, snapshot, words->linetable, entry->linetable_print, plan))) {
        return NULL;
    }
    entry->used_at = cache->walk;
    return entry;
}

static lc_known_code *make_room(lc_code_cache *cache, uint64_t address)
{
    uint32_t best = LC_CODE_CACHE_SIZE;
    uint64_t best_used_at = 0; /* walks are numbered from 1 */
    for (uint32_t i = 0; i < PROBES; i++) {
        const uint32_t index = (place(address) + i) & (LC_CODE_CACHE_SIZE - 1);
        const uint64_t key = cache->keys[index];
        if (key == address) {
            best = index; /* an address has one entry at most */
            best_used_at = 0;
            break;
        }
        const uint64_t used_at = key == 0 ? 0 : cache->entries[index].used_at;
        if (best == LC_CODE_CACHE_SIZE || used_at < best_used_at) {
            best = index;
            best_used_at = used_at;
        }
    }
    if (best_used_at == cache->walk) {
        return NULL;
    }
    cache->keys[best] = address;
    return &cache->entries[best];
}

static lc_value_print print_linetable(const lc_cpython_source *source, uint64_t address)
{
    const uint32_t header = source->layout.bytes_data;
    uint8_t object[LINETABLE_PRINT_BYTES];
    if (address % 8 != 0 || !lc_read(source->reader, address, object, header)) {
        return (lc_value_print){0};
    }
    const uint64_t size = lc_u64_at(object, source->layout.var_size);
    const uint32_t bytes =
        size < LINETABLE_PRINT_BYTES - header ? header + (uint32_t)size : LINETABLE_PRINT_BYTES;
    if (!lc_read(source->reader, address, object, bytes)) {
        return (lc_value_print){0};
    }
    return lc_print_of_bytes(source, object, bytes);
}

lc_known_code *lc_code_cache_load(lc_code_cache *cache, const lc_cpython_source *source, uint64_t address,
                                  const lc_code_words *words)
{
    lc_known_code *entry = make_room(cache, address);
    if (entry == NULL) {
        return NULL;
    }
    lc_code_texts *texts = &cache->texts[entry - cache->entries];
    lc_str_value filename = {.bytes = texts->filename};
    lc_str_value qualname = {.bytes = texts->qualname};
    cache->loads++;
    entry->address = address;
    entry->words = *words;
    entry->used_at = cache->walk;
    entry->proofs = 0;
    if (!lc_read_str(source, words->filename, cache->scratch, &filename) ||
        !lc_read_str(source, words->qualname, cache->scratch, &qualname)) {
        lc_code_cache_forget(cache, entry);
        return NULL;
    }
    entry->filename_print = filename.print;
    entry->qualname_print = qualname.print;
    if (words->version == 0) {
        entry->linetable_print = print_linetable(source, words->linetable);
        if (entry->linetable_print.hash == 0) {
            lc_code_cache_forget(cache, entry);
            return NULL;
        }
    }
    entry->facts = (lc_code_facts){
        .serial = ++cache->serial,
        .filename = {texts->filename, filename.length},
        .qualname = {texts->qualname, qualname.length},
        .first_line = words->first_line,
        .code_flags = words->flags,
    };
    return entry;
}

void lc_code_cache_forget(lc_code_cache *cache, lc_known_code *entry)
{
    cache->keys[entry - cache->entries] = 0;
    entry->address = 0;
}

static lc_position_entry *position_set(lc_code_cache *cache, uint64_t serial, uint32_t unit)
{
    const uint64_t hash = lc_mix(lc_mix(0, serial), unit);
    return cache->positions[(hash >> 32) & (LC_POSITION_SETS - 1)];
}

static lc_position_entry *find_position(lc_position_entry *set, uint64_t serial, uint32_t unit)
{
    for (uint32_t i = 0; i < LC_POSITION_WAYS; i++) {
        if (set[i].serial == serial && set[i].unit == unit) {
            return &set[i];
        }
    }
    return NULL;
}

lc_position lc_code_cache_position(lc_code_cache *cache, const lc_cpython_source *source,
                                   const lc_known_code *entry, uint32_t unit, bool *fresh)
{
    lc_position_entry *set = position_set(cache, entry->facts.serial, unit);
    const lc_position_entry *known = find_position(set, entry->facts.serial, unit);
    *fresh = false;
    if (known != NULL) {
        return known->position;
    }
    *fresh = true;
    lc_position position = {0};
    uint32_t length = 0;
    if (lc_read_bytes(source, entry->words.linetable, cache->scratch, LC_BYTES_MAX, &length)) {
        lc_linetable_find(cache->scratch, length, entry->words.first_line, unit, &position);
    }
    memmove(&set[1], &set[0], (LC_POSITION_WAYS - 1) * sizeof set[0]); /* the oldest goes */
    set[0] = (lc_position_entry){.serial = entry->facts.serial, .unit = unit, .position = position};
    return position;
}

void lc_code_cache_forget_position(lc_code_cache *cache, uint64_t serial, uint32_t unit)
{
    lc_position_entry *known = find_position(position_set(cache, serial, unit), serial, unit);
    if (known != NULL) {
        known->serial = 0;
    }
}
