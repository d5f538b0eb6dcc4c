/* Functions of libraries that are loaded already, by their names. */
#ifndef LOOPCANARY_SYMBOL_H
#define LOOPCANARY_SYMBOL_H

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

/* Puts the address into the pointer to a function at `function`. False, and nothing is put there: neither the object nor what
 * it is linked to has such a symbol. */
static inline bool lc_symbol_find(void *object, const char *name, void *function)
{
    void *address = dlsym(object, name);
    if (address != NULL) {
        memcpy(function, &address, sizeof address); /* ISO C knows no cast from one to the other */
    }
    return address != NULL;
}

#endif
