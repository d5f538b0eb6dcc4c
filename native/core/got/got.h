/* The table through which an object of this process (the program, a library, an extension) calls functions of
 * other objects: ELF's global offset table. Entries of it can be replaced, and put back. Linux, 64 bits.
 *
 * Only entries that the linker fills for calls are touched (JUMP_SLOT, GLOB_DAT); pointers in data are not.
 * An entry is stored to while the linker's lock is held, so that its object cannot be unloaded meanwhile. Not
 * thread-safe among itself; the program's threads may call through the entries at any moment.
 */
#pragma once

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* An object is meant by an address in it, or, where that is NULL, by its path: whole, or the end after a
 * slash (a soname). The first object that is so named counts. */
typedef struct {
    const void *address;
    const char *path;
} lc_got_object;

typedef struct {
    void **entry;   /* NULL: nothing is replaced */
    void *original; /* what the entry led to */
    void *replacement;
    const void *base; /* where its object is loaded */
    int line;         /* in core/patches */
} lc_got_patch;

/* A function of `symbol` in the object, found by lc_got_replace: what shall be called in place of
 * `original`; NULL leaves the entry alone. Called under the linker's lock: may not load, unload or look up
 * anything. */
typedef void *(*lc_got_choose)(void *context, void *original);

typedef struct {
    const char *symbol;
    /* `original` of an entry that the linker has not bound yet: a call by it would have the linker
     * overwrite the entry. NULL: such entries are left alone. */
    void *fallback;
    /* Also where the object calls a function of its own by this name. */
    bool own_too;
} lc_got_call;

/* Replaces all entries by which the object calls the function; returns how many, `room` at most. Those
 * that are replaced already (`choose` returns what they hold) do not count. 0: it makes no such call, is
 * not there, or its table cannot be written; nothing is changed then. */
size_t lc_got_replace(lc_got_object object, lc_got_call call, lc_got_choose choose, void *context,
                      lc_got_patch *patches, size_t room);

/* The same for the object with the address `caller`, of which all calls of `function` shall go to
 * `replacement`. 0 also where the linker takes the object's own entry for the function itself: calls by
 * its address, as the replacement's, would come back. */
size_t lc_got_lead(const void *caller, const char *symbol, void *function, void *replacement,
                   lc_got_patch *patches, size_t room);

/* Puts the original back. Not where other code has replaced the entry since, nor where its object is gone.
 * False: it is ours, and its page refuses to be written. */
bool lc_got_restore(lc_got_patch *patch);

bool lc_got_is_in_place(const lc_got_patch *patch);

/* The address at which the object is loaded. False: it is not loaded. */
bool lc_got_find(lc_got_object object, const void **base);

/* Puts the address into the pointer to a function at `function`. False, and nothing is put there: neither
 * the object nor what it is linked to has such a symbol. */
static inline bool lc_symbol_find(void *object, const char *name, void *function)
{
    void *address = dlsym(object, name);
    if (address != NULL) {
        memcpy(function, &address, sizeof address); /* ISO C knows no cast from one to the other */
    }
    return address != NULL;
}

/* ---- entry_store.c ----------------------------------------------------------------------------------
 * Stores into entries of tables whose pages the linker may have sealed, beside others who patch such entries.
 *
 * /proc/self/mem writes to sealed pages without a change of what they may, so that it does not matter whether
 * another patcher unseals or seals the page at this moment. Where that file is refused (a sandbox; a process
 * that is not dumpable), the page is unsealed for the store and sealed again. Either way the kernel stores: a
 * page that is sealed meanwhile is an error and no fault. It copies aligned pointers whole (none was torn in
 * 8,000,000 stores beside 15 * 10^9 reads): a thread that calls through the entry meanwhile gets the old or
 * the new one. */

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
