/* The table through which an object of this process (the program, a library, an extension) calls functions of
 * other objects: ELF's global offset table. One entry of it can be replaced, and put back. Linux, 64 bits.
 *
 * Not thread-safe among itself; the program's threads may call through the entry at any moment.
 */
#ifndef LOOPCANARY_GOT_H
#define LOOPCANARY_GOT_H

#include <stdbool.h>

typedef struct {
    void **entry;   /* NULL: nothing is replaced */
    void *original; /* what the entry held */
    void *replacement;
    bool read_only; /* the linker has sealed its page (RELRO) */
} lc_got_patch;

/* In the object that the code at `address` belongs to, lets calls of `symbol` go to `replacement`. False, and
 * nothing is changed: it calls no such function, or its table cannot be written. `fallback` is what
 * `original` becomes where the entry is not bound yet: the linker would overwrite it at the first call, which
 * therefore must not go through it. */
bool lc_got_replace(lc_got_patch *patch, const void *address, const char *symbol, void *replacement,
                    void *fallback);

/* Puts the original back, unless somebody else has replaced the entry since. */
void lc_got_restore(lc_got_patch *patch);

#endif
