#include "core/got/got.h"

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { JUMP_SLOT = R_X86_64_JUMP_SLOT, GLOB_DAT = R_X86_64_GLOB_DAT };
#elif defined(__aarch64__)
enum { JUMP_SLOT = R_AARCH64_JUMP_SLOT, GLOB_DAT = R_AARCH64_GLOB_DAT };
#endif

typedef struct dl_phdr_info loaded;

/* What the dynamic section says; addresses as they are in memory. */
typedef struct {
    const ElfW(Sym) *symbols;
    const char *strings;
    size_t strings_bytes;
    const ElfW(Rela) *relocations[2]; /* of calls, of data */
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
        case DT_SYMTAB: out->symbols = (const ElfW(Sym) *)address; break;
        case DT_STRTAB: out->strings = (const char *)address; break;
        case DT_STRSZ: out->strings_bytes = entry->d_un.d_val; break;
        case DT_JMPREL: out->relocations[0] = (const ElfW(Rela) *)address; break;
        case DT_PLTRELSZ: out->relocation_bytes[0] = entry->d_un.d_val; break;
        case DT_RELA: out->relocations[1] = (const ElfW(Rela) *)address; break;
        case DT_RELASZ: out->relocation_bytes[1] = entry->d_un.d_val; break;
        default: break;
        }
    }
    return out->symbols != NULL && out->strings != NULL;
}

/* The symbol that the entry of this relocation calls, if it is the one asked for. */
static const ElfW(Sym) *called_symbol(const dynamic_facts *facts, const ElfW(Rela) *relocation, const char *name)
{
    const uint64_t type = ELF64_R_TYPE(relocation->r_info);
    if (type != (uint64_t)JUMP_SLOT && type != (uint64_t)GLOB_DAT) {
        return NULL;
    }
    const ElfW(Sym) *symbol = &facts->symbols[ELF64_R_SYM(relocation->r_info)];
    return symbol->st_name < facts->strings_bytes && strcmp(facts->strings + symbol->st_name, name) == 0 ? symbol
                                                                                                         : NULL;
}

/* The protection of the page as the kernel knows it; -1 where that cannot be learned. RELRO's borders do not tell: what of
 * its last page is sealed depends on the linker. */
static int protection_of(uintptr_t address)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512];
    bool whole = true; /* the line before was read to its end */
    int protection = -1;
    while (maps != NULL && protection < 0 && fgets(line, sizeof line, maps) != NULL) {
        uintptr_t begin, end;
        char may[5];
        const bool begins = whole;
        whole = strchr(line, '\n') != NULL;
        if (begins && sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &begin, &end, may) == 3 && address >= begin &&
            address < end) {
            protection = (may[0] == 'r' ? PROT_READ : 0) | (may[1] == 'w' ? PROT_WRITE : 0) |
                         (may[2] == 'x' ? PROT_EXEC : 0);
        }
    }
    if (maps != NULL) {
        fclose(maps);
    }
    return protection;
}

static bool store(void **entry, void *value)
{
    const uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    void *page = (void *)((uintptr_t)entry & ~(page_bytes - 1u));
    const int protection = protection_of((uintptr_t)entry);
    if (protection < 0) {
        return false;
    }
    const bool sealed = (protection & PROT_WRITE) == 0;
    if (sealed && mprotect(page, page_bytes, protection | PROT_WRITE) != 0) {
        return false;
    }
    __atomic_store_n(entry, value, __ATOMIC_RELEASE);
    if (sealed) {
        (void)mprotect(page, page_bytes, protection); /* what was writable once can be sealed again */
    }
    return true;
}

/* ---- replacing --------------------------------------------------------------------------- */

typedef struct {
    lc_got_object object;
    lc_got_call call;
    lc_got_choose choose;
    void *context;
    lc_got_patch *patches;
    size_t room;
    size_t count;
} replacing;

/* What a call by this entry comes to; NULL where that is not known, or is not to be replaced. */
static void *callee_of(const loaded *object, const ElfW(Sym) *symbol, void *held, const lc_got_call *call)
{
    const bool own = symbol->st_shndx != SHN_UNDEF;
    if (own && (!call->own_too || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC)) {
        return NULL;
    }
    if (!contains(object, (uintptr_t)held, PT_LOAD)) {
        return held;
    }
    /* It leads back into the object: to the object's own function, or, while it is not bound, to the linker's help. */
    return own ? (void *)(object->dlpi_addr + symbol->st_value) : call->fallback;
}

static void replace_entry(const loaded *object, const ElfW(Rela) *relocation, const ElfW(Sym) *symbol, replacing *r)
{
    void **entry = (void **)(object->dlpi_addr + relocation->r_offset);
    if (!contains(object, (uintptr_t)entry, PT_LOAD)) {
        return;
    }
    void *held = __atomic_load_n(entry, __ATOMIC_ACQUIRE);
    void *original = callee_of(object, symbol, held, &r->call);
    void *replacement = original != NULL ? r->choose(r->context, original) : NULL;
    if (replacement == NULL || replacement == held || !store(entry, replacement)) {
        return;
    }
    r->patches[r->count++] =
        (lc_got_patch){entry, original, replacement, (const void *)(uintptr_t)object->dlpi_addr};
}

static int replace_in(loaded *object, size_t size, void *asked)
{
    replacing *r = asked;
    dynamic_facts facts;
    (void)size;
    if (!is_meant(object, r->object)) {
        return 0;
    }
    for (int table = 0; table < 2 && read_dynamic(object, &facts); table++) {
        const ElfW(Rela) *relocation = facts.relocations[table];
        const size_t count = relocation ? facts.relocation_bytes[table] / sizeof *relocation : 0;
        for (size_t i = 0; i < count && r->count < r->room; i++) {
            const ElfW(Sym) *symbol = called_symbol(&facts, &relocation[i], r->call.symbol);
            if (symbol != NULL) {
                replace_entry(object, &relocation[i], symbol, r);
            }
        }
    }
    return 1;
}

size_t lc_got_replace(lc_got_object object, lc_got_call call, lc_got_choose choose, void *context,
                      lc_got_patch *patches, size_t room)
{
    replacing r = {object, call, choose, context, patches, room, 0};
    dl_iterate_phdr(replace_in, &r);
    return r.count;
}

/* ---- afterwards -------------------------------------------------------------------------- */

typedef struct {
    const lc_got_patch *patch;
    bool in_place;
    bool restore;
    bool failed;
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
    r->in_place = __atomic_load_n(patch->entry, __ATOMIC_ACQUIRE) == patch->replacement;
    if (r->in_place && r->restore) {
        r->failed = !store(patch->entry, patch->original);
    }
    return 1;
}

bool lc_got_restore(lc_got_patch *patch)
{
    revisit r = {.patch = patch, .restore = true};
    if (patch->entry != NULL) {
        dl_iterate_phdr(revisit_in, &r);
    }
    if (!r.failed) {
        patch->entry = NULL;
    }
    return !r.failed;
}

bool lc_got_is_in_place(const lc_got_patch *patch)
{
    revisit r = {.patch = patch};
    if (patch->entry != NULL) {
        dl_iterate_phdr(revisit_in, &r);
    }
    return r.in_place;
}

typedef struct {
    lc_got_object object;
    const void **base;
    char *path;
    size_t room;
} finding;

static int find_in(loaded *object, size_t size, void *asked)
{
    finding *f = asked;
    (void)size;
    if (!is_meant(object, f->object)) {
        return 0;
    }
    *f->base = (const void *)(uintptr_t)object->dlpi_addr;
    snprintf(f->path, f->room, "%s", object->dlpi_name ? object->dlpi_name : "");
    return 1;
}

bool lc_got_find(lc_got_object object, const void **base, char *path, size_t room)
{
    finding f = {object, base, path, room};
    return dl_iterate_phdr(find_in, &f) != 0;
}
