#include "got.h"

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { JUMP_SLOT = R_X86_64_JUMP_SLOT, GLOB_DAT = R_X86_64_GLOB_DAT };
#elif defined(__aarch64__)
enum { JUMP_SLOT = R_AARCH64_JUMP_SLOT, GLOB_DAT = R_AARCH64_GLOB_DAT };
#endif

typedef struct {
    uintptr_t address; /* asked for */
    const char *symbol;
    void **entry; /* found */
    bool read_only;
    bool bound;
} search;

/* What the dynamic section says; addresses as they are in memory. */
typedef struct {
    const ElfW(Sym) *symbols;
    const char *strings;
    size_t strings_bytes;
    const ElfW(Rela) *relocations[2]; /* of calls, of data */
    size_t relocation_bytes[2];
} dynamic_facts;

static bool contains(const struct dl_phdr_info *object, uintptr_t address, uint32_t type)
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

/* glibc adds the load address to these entries in place, other C libraries leave them as in the file. */
static uintptr_t in_memory(const struct dl_phdr_info *object, ElfW(Addr) value)
{
    return value < object->dlpi_addr ? object->dlpi_addr + value : value;
}

static bool read_dynamic(const struct dl_phdr_info *object, dynamic_facts *out)
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

static bool is_call_of(const dynamic_facts *facts, const ElfW(Rela) *relocation, const char *symbol)
{
    const uint64_t type = ELF64_R_TYPE(relocation->r_info);
    if (type != (uint64_t)JUMP_SLOT && type != (uint64_t)GLOB_DAT) {
        return false;
    }
    const uint32_t name = facts->symbols[ELF64_R_SYM(relocation->r_info)].st_name;
    return name < facts->strings_bytes && strcmp(facts->strings + name, symbol) == 0;
}

static int look_at_object(struct dl_phdr_info *object, size_t size, void *asked)
{
    search *s = asked;
    dynamic_facts facts;
    (void)size;
    if (!contains(object, s->address, PT_LOAD)) {
        return 0;
    }
    for (int table = 0; table < 2 && read_dynamic(object, &facts) && s->entry == NULL; table++) {
        const ElfW(Rela) *relocation = facts.relocations[table];
        const size_t count = relocation ? facts.relocation_bytes[table] / sizeof *relocation : 0;
        for (size_t i = 0; i < count && s->entry == NULL; i++) {
            if (is_call_of(&facts, &relocation[i], s->symbol)) {
                s->entry = (void **)(object->dlpi_addr + relocation[i].r_offset);
                s->read_only = contains(object, (uintptr_t)s->entry, PT_GNU_RELRO);
                /* An entry that is not bound leads back into the object, to the linker's help. */
                s->bound = !contains(object, (uintptr_t)*s->entry, PT_LOAD);
            }
        }
    }
    return 1;
}

static bool store(void **entry, void *value, bool read_only)
{
    const uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    void *page = (void *)((uintptr_t)entry & ~(page_bytes - 1u));
    if (read_only && mprotect(page, page_bytes, PROT_READ | PROT_WRITE) != 0) {
        return false;
    }
    __atomic_store_n(entry, value, __ATOMIC_RELEASE);
    if (read_only) {
        mprotect(page, page_bytes, PROT_READ);
    }
    return true;
}

bool lc_got_replace(lc_got_patch *patch, const void *address, const char *symbol, void *replacement,
                    void *fallback)
{
    search s = {.address = (uintptr_t)address, .symbol = symbol};
    dl_iterate_phdr(look_at_object, &s);
    if (s.entry == NULL) {
        return false;
    }
    *patch = (lc_got_patch){s.entry, s.bound ? *s.entry : fallback, replacement, s.read_only};
    if (!store(s.entry, replacement, s.read_only)) {
        patch->entry = NULL;
        return false;
    }
    return true;
}

void lc_got_restore(lc_got_patch *patch)
{
    if (patch->entry != NULL && __atomic_load_n(patch->entry, __ATOMIC_ACQUIRE) == patch->replacement) {
        store(patch->entry, patch->original, patch->read_only);
    }
    patch->entry = NULL;
}
