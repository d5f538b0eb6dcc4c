/* A library whose calls are replaced, built in each way that a linker can bind it (relocations/calls.c). */
#pragma once

#include "core/got/got.h"

#include <dlfcn.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tests/check.h"

enum { MADE_UP = 4711, ANOTHER_S = 4712, ROOM = 8 };

#define CODE(function) ((void *)(uintptr_t)(function))

static inline void *choose(void *context, void *original)
{
    (void)original;
    return context;
}

typedef struct {
    const char *path;
    int flags;
    const char *file; /* the end of the path */
    void *handle;
    int (*call)(void);
    int (*call_by_data)(void);
    int (*call_own)(void);
} library;

static inline int made_up_poll(struct pollfd *descriptors, nfds_t count, int timeout)
{
    (void)descriptors;
    (void)count;
    (void)timeout;
    return MADE_UP;
}

static inline int made_up_own(void) { return MADE_UP; }

static const lc_got_call of_poll = {.symbol = "poll", .fallback = (void *)(uintptr_t)poll};

static inline void open_library(library *l)
{
    l->handle = dlopen(l->path, l->flags | RTLD_LOCAL);
    if (l->handle == NULL) {
        fprintf(stderr, "%s\n", dlerror());
    }
    CHECK(l->handle != NULL);
    *(void **)&l->call = dlsym(l->handle, "call");
    *(void **)&l->call_by_data = dlsym(l->handle, "call_by_data");
    *(void **)&l->call_own = dlsym(l->handle, "call_own");
    CHECK(l->call != NULL && l->call_by_data != NULL && l->call_own != NULL);
}

static inline size_t hook(const library *l, lc_got_patch *patches)
{
    return lc_got_replace((lc_got_object){.path = l->file}, of_poll, choose, CODE(made_up_poll), patches,
                          ROOM);
}

static inline void restore(lc_got_patch *patches, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        CHECK(lc_got_restore(&patches[i]));
    }
}

/* Of the mapping that holds the address: "r--p" and the like. */
static inline void protection(const void *address, char may[5])
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[4096];
    unsigned long begin, end;
    CHECK(maps != NULL);
    memset(may, 0, 5);
    while (fgets(line, sizeof line, maps) != NULL && may[0] == '\0') {
        char found[5];
        if (sscanf(line, "%lx-%lx %4s", &begin, &end, found) == 3 && (unsigned long)address >= begin &&
            (unsigned long)address < end) {
            memcpy(may, found, 5);
        }
    }
    fclose(maps);
    CHECK(may[0] == 'r');
}

#define LIBRARY(name, flags) {GOT_LIBRARIES "/" name ".so", flags, name ".so", NULL, NULL, NULL, NULL}
