#include "core/got/got.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* RELRO's borders do not tell: what of its last page is sealed depends on the linker. */
typedef struct {
    int fd;
    size_t at, used;
    char text[4096];
} maps_file;

static int next_char(maps_file *maps)
{
    if (maps->at == maps->used) {
        const ssize_t got = read(maps->fd, maps->text, sizeof maps->text);
        maps->used = got > 0 ? (size_t)got : 0;
        maps->at = 0;
    }
    return maps->at < maps->used ? (unsigned char)maps->text[maps->at++] : EOF;
}

static bool next_number(maps_file *maps, int end, uintptr_t *out)
{
    *out = 0;
    for (;;) {
        const int c = next_char(maps);
        if (c == end) {
            return true;
        }
        const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0) {
            return false;
        }
        *out = *out << 4 | (uintptr_t)digit;
    }
}

static int next_protection(maps_file *maps)
{
    const int read = next_char(maps) == 'r' ? PROT_READ : 0;
    const int write = next_char(maps) == 'w' ? PROT_WRITE : 0;
    return read | write | (next_char(maps) == 'x' ? PROT_EXEC : 0);
}

static void skip_line(maps_file *maps)
{
    int c;
    do {
        c = next_char(maps);
    } while (c != '\n' && c != EOF);
}

static void learn_protections(lc_entry_change *changes, size_t count)
{
    maps_file maps = {.fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
    uintptr_t begin, end;
    while (maps.fd >= 0 && next_number(&maps, '-', &begin) && next_number(&maps, ' ', &end)) {
        const int protection = next_protection(&maps);
        for (size_t i = 0; i < count; i++) {
            const uintptr_t entry = (uintptr_t)changes[i].entry;
            changes[i].protection = entry >= begin && entry < end ? protection : changes[i].protection;
        }
        skip_line(&maps);
    }
    if (maps.fd >= 0) {
        close(maps.fd);
    }
}

lc_entry_way lc_entry_way_open(lc_entry_change *changes, size_t count)
{
    const lc_entry_way way = {open("/proc/self/mem", O_RDWR | O_CLOEXEC)};
    for (size_t i = 0; i < count; i++) {
        changes[i].protection = -1;
    }
    if (way.memory < 0) {
        learn_protections(changes, count);
    }
    return way;
}

void lc_entry_way_close(lc_entry_way *way)
{
    if (way->memory >= 0) {
        close(way->memory);
    }
    way->memory = -1;
}

/* By the call's number, since the sanitizers' wrapper takes the range for memory that may be written. */
static void store_by_kernel(void **entry, void *value)
{
    const struct iovec from = {&value, sizeof value}, into = {entry, sizeof *entry};
    (void)syscall(SYS_process_vm_writev, getpid(), &from, 1UL, &into, 1UL, 0UL);
}

static void store_unsealed(const lc_entry_change *change)
{
    const uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    void *page = (void *)((uintptr_t)change->entry & ~(page_bytes - 1u));
    if (change->protection < 0) {
        return;
    }
    const bool sealed = (change->protection & PROT_WRITE) == 0;
    if (sealed && mprotect(page, page_bytes, change->protection | PROT_WRITE) != 0) {
        return;
    }
    store_by_kernel(change->entry, change->value);
    if (sealed) {
        (void)mprotect(page, page_bytes, change->protection); /* what was writable once can be sealed again */
    }
}

static void *held_by(void **entry) { return __atomic_load_n(entry, __ATOMIC_ACQUIRE); }

void lc_entry_store(const lc_entry_way *way, lc_entry_change *change)
{
    if (held_by(change->entry) == change->held) {
        if (way->memory >= 0) {
            (void)!pwrite(way->memory, &change->value, sizeof change->value, (off_t)(uintptr_t)change->entry);
        } else {
            store_unsealed(change);
        }
    }
    change->is_stored = held_by(change->entry) == change->value;
}
