#include "core/got/got.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>

#include "core/patches/patches.h"

#if defined(__x86_64__)
enum { JUMP_SLOT = R_X86_64_JUMP_SLOT, GLOB_DAT = R_X86_64_GLOB_DAT };
#elif defined(__aarch64__)
enum { JUMP_SLOT = R_AARCH64_JUMP_SLOT, GLOB_DAT = R_AARCH64_GLOB_DAT };
#endif

typedef struct dl_phdr_info loaded;

/* What the dynamic section says; addresses as they are in memory. */
typedef struct {
    const ElfW(Sym) * symbols;
    const char *strings;
    size_t strings_bytes;
    const ElfW(Rela) * relocations[2]; /* of calls, of data */
    size_t relocation_bytes[2];
} dynamic_facts;

static bool contains(const loaded *object, uintptr_t address, uint32_t type)
{
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        const uintptr_t begin = object->dlpi_addr + part->p_vaddr;
        if (part->p_type == type && address >= begin && address < begin + part->p_memsz) {
            return true;
        }
    }
    return false;
}

/* The whole path, or its end after a slash. */
static bool is_named(const loaded *object, const char *path)
{
    const char *name = object->dlpi_name ? object->dlpi_name : "";
    const size_t length = strlen(name), asked = strlen(path);
    return asked > 0 && length >= asked && strcmp(name + length - asked, path) == 0 &&
           (length == asked || name[length - asked - 1u] == '/');
}

static bool is_meant(const loaded *object, lc_got_object asked)
{
    if (asked.address != NULL) {
        return contains(object, (uintptr_t)asked.address, PT_LOAD);
    }
    return asked.path != NULL && is_named(object, asked.path);
}

/* glibc adds the load address to these entries in place, other C libraries leave them as in the file. */
static uintptr_t in_memory(const loaded *object, ElfW(Addr) value)
{
    return value < object->dlpi_addr ? object->dlpi_addr + value : value;
}

static bool read_dynamic(const loaded *object, dynamic_facts *out)
{
    const ElfW(Dyn) *entry = NULL;
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC) {
            entry = (const ElfW(Dyn) *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
        }
    }
    memset(out, 0, sizeof *out);
    for (; entry != NULL && entry->d_tag != DT_NULL; entry++) {
        const uintptr_t address = in_memory(object, entry->d_un.d_ptr);
        switch (entry->d_tag) {
        case DT_SYMTAB:
            out->symbols = (const ElfW(Sym) *)address;
            break;
        case DT_STRTAB:
            out->strings = (const char *)address;
            break;
        case DT_STRSZ:
            out->strings_bytes = entry->d_un.d_val;
            break;
        case DT_JMPREL:
            out->relocations[0] = (const ElfW(Rela) *)address;
            break;
        case DT_PLTRELSZ:
            out->relocation_bytes[0] = entry->d_un.d_val;
            break;
        case DT_RELA:
            out->relocations[1] = (const ElfW(Rela) *)address;
            break;
        case DT_RELASZ:
            out->relocation_bytes[1] = entry->d_un.d_val;
            break;
        default:
            break;
        }
    }
    return out->symbols != NULL && out->strings != NULL;
}

/* The symbol that the entry of this relocation calls, if it is the one asked for. */
static const ElfW(Sym) *
    called_symbol(const dynamic_facts *facts, const ElfW(Rela) * relocation, const char *name)
{
    const uint64_t type = ELF64_R_TYPE(relocation->r_info);
    if (type != (uint64_t)JUMP_SLOT && type != (uint64_t)GLOB_DAT) {
        return NULL;
    }
    const ElfW(Sym) *symbol = &facts->symbols[ELF64_R_SYM(relocation->r_info)];
    return symbol->st_name < facts->strings_bytes && strcmp(facts->strings + symbol->st_name, name) == 0
               ? symbol
               : NULL;
}

/* ---- changing entries -------------------------------------------------------------------- */

typedef struct {
    lc_entry_way way;
    lc_entry_change *changes;
    size_t count;
} changing;

static int change_in(loaded *object, size_t size, void *asked)
{
    const changing *c = asked;
    (void)size;
    for (size_t i = 0; i < c->count; i++) {
        lc_entry_change *change = &c->changes[i];
        if ((const void *)(uintptr_t)object->dlpi_addr == change->base &&
            contains(object, (uintptr_t)change->entry, PT_LOAD)) {
            lc_entry_store(&c->way, change);
        }
    }
    return 0;
}

/* What the pages may is learned beside the linker's lock: that can take long. */
static void change_entries(lc_entry_change *changes, size_t count)
{
    changing c = {{-1}, changes, count};
    if (count == 0) {
        return;
    }
    c.way = lc_entry_way_open(changes, count);
    dl_iterate_phdr(change_in, &c);
    lc_entry_way_close(&c.way);
}

/* ---- replacing --------------------------------------------------------------------------- */

enum { ENTRIES_MAX = 16 };

typedef struct {
    lc_got_object object;
    lc_got_call call;
    lc_got_choose choose;
    void *context;
    size_t room;
    size_t count;
    lc_entry_change changes[ENTRIES_MAX];
    void *originals[ENTRIES_MAX];
    char path[256];
} replacing;

/* What a call by this entry comes to; NULL where that is not known, or is not to be replaced. */
static void *callee_of(const loaded *object, const ElfW(Sym) * symbol, void *held, const lc_got_call *call)
{
    const bool own = symbol->st_shndx != SHN_UNDEF;
    if (own && (!call->own_too || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC)) {
        return NULL;
    }
    if (!contains(object, (uintptr_t)held, PT_LOAD)) {
        return held;
    }
    /* It leads back into the object: to the object's own function, or, while it is not bound, to the
     * linker's help. */
    return own ? (void *)(object->dlpi_addr + symbol->st_value) : call->fallback;
}

static void plan_entry(const loaded *object, const ElfW(Rela) * relocation, const ElfW(Sym) * symbol,
                       replacing *r)
{
    void **entry = (void **)(object->dlpi_addr + relocation->r_offset);
    if (!contains(object, (uintptr_t)entry, PT_LOAD)) {
        return;
    }
    void *held = __atomic_load_n(entry, __ATOMIC_ACQUIRE);
    void *original = callee_of(object, symbol, held, &r->call);
    void *replacement = original != NULL ? r->choose(r->context, original) : NULL;
    if (replacement == NULL || replacement == held) {
        return;
    }
    r->originals[r->count] = original;
    r->changes[r->count++] = (lc_entry_change){.entry = entry,
                                               .base = (const void *)(uintptr_t)object->dlpi_addr,
                                               .held = held,
                                               .value = replacement};
}

static int plan_in(loaded *object, size_t size, void *asked)
{
    replacing *r = asked;
    dynamic_facts facts;
    (void)size;
    if (!is_meant(object, r->object)) {
        return 0;
    }
    snprintf(r->path, sizeof r->path, "%s", object->dlpi_name ? object->dlpi_name : "");
    for (int table = 0; table < 2 && read_dynamic(object, &facts); table++) {
        const ElfW(Rela) *relocation = facts.relocations[table];
        const size_t count = relocation ? facts.relocation_bytes[table] / sizeof *relocation : 0;
        for (size_t i = 0; i < count && r->count < r->room; i++) {
            const ElfW(Sym) *symbol = called_symbol(&facts, &relocation[i], r->call.symbol);
            if (symbol != NULL) {
                plan_entry(object, &relocation[i], symbol, r);
            }
        }
    }
    return 1;
}

static size_t keep_stored(replacing *r, lc_got_patch *patches)
{
    size_t stored = 0;
    for (size_t i = 0; i < r->count; i++) {
        const lc_entry_change *change = &r->changes[i];
        if (change->is_stored) {
            const int line = lc_patch_note("+call %s in %s", r->call.symbol,
                                           r->path[0] != '\0' ? r->path : "the program itself");
            patches[stored++] =
                (lc_got_patch){change->entry, r->originals[i], change->value, change->base, line};
        }
    }
    r->count -= stored;
    return stored;
}

size_t lc_got_replace(lc_got_object object, lc_got_call call, lc_got_choose choose, void *context,
                      lc_got_patch *patches, size_t room)
{
    replacing r = {.object = object, .call = call, .choose = choose, .context = context};
    size_t stored = 0;
    /* The linker may bind an entry at the very moment at which it is stored to: then it is stored to once
     * more. */
    for (int pass = 0; pass < 2 && (pass == 0 || r.count > 0) && stored < room; pass++) {
        r.room = room - stored < ENTRIES_MAX ? room - stored : ENTRIES_MAX;
        r.count = 0;
        dl_iterate_phdr(plan_in, &r);
        change_entries(r.changes, r.count);
        stored += keep_stored(&r, &patches[stored]);
    }
    return stored;
}

/* ---- afterwards -------------------------------------------------------------------------- */

typedef struct {
    const lc_got_patch *patch;
    void *held; /* NULL: its object is gone */
} revisit;

static int revisit_in(loaded *object, size_t size, void *asked)
{
    revisit *r = asked;
    const lc_got_patch *patch = r->patch;
    (void)size;
    if ((const void *)(uintptr_t)object->dlpi_addr != patch->base ||
        !contains(object, (uintptr_t)patch->entry, PT_LOAD)) {
        return 0;
    }
    /* Another object may have been loaded in the place of ours: it does not hold our replacement. */
    r->held = __atomic_load_n(patch->entry, __ATOMIC_ACQUIRE);
    return 1;
}

static void *held_by(const lc_got_patch *patch)
{
    revisit r = {.patch = patch};
    if (patch->entry != NULL) {
        dl_iterate_phdr(revisit_in, &r);
    }
    return r.held;
}

bool lc_got_is_in_place(const lc_got_patch *patch)
{
    return patch->entry != NULL && held_by(patch) == patch->replacement;
}

typedef struct {
    void *function, *replacement;
} led;

static void *lead(void *context, void *original)
{
    const led *l = context;
    return original == l->function ? l->replacement : NULL;
}

size_t lc_got_lead(const void *caller, const char *symbol, void *function, void *replacement,
                   lc_got_patch *patches, size_t room)
{
    const lc_got_object where = {.address = caller}, functions = {.address = function};
    const lc_got_call call = {.symbol = symbol, .fallback = function};
    const void *base, *functions_base;
    led l = {function, replacement};
    return lc_got_find(where, &base) && lc_got_find(functions, &functions_base) && base != functions_base
               ? lc_got_replace(where, call, lead, &l, patches, room)
               : 0u;
}

bool lc_got_restore(lc_got_patch *patch)
{
    lc_entry_change change = {
        .entry = patch->entry, .base = patch->base, .held = patch->replacement, .value = patch->original};
    if (lc_got_is_in_place(patch)) {
        change_entries(&change, 1);
    }
    if (lc_got_is_in_place(patch)) {
        return false;
    }
    void *held = held_by(patch);
    lc_patch_turn(patch->entry != NULL ? patch->line : 0,
                  held == NULL || held == patch->original ? '-' : '!');
    patch->entry = NULL;
    return true;
}

typedef struct {
    lc_got_object object;
    const void **base;
} finding;

static int find_in(loaded *object, size_t size, void *asked)
{
    finding *f = asked;
    (void)size;
    if (!is_meant(object, f->object)) {
        return 0;
    }
    *f->base = (const void *)(uintptr_t)object->dlpi_addr;
    return 1;
}

bool lc_got_find(lc_got_object object, const void **base)
{
    finding f = {object, base};
    return dl_iterate_phdr(find_in, &f) != 0;
}
