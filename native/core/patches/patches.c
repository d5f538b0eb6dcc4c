#include "core/patches/patches.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/flight/set_aside.h"

static char lines[LC_PATCHES_BYTES + 1]; /* only this is read: anybody of this user may write to the file */
static size_t used;
static char *page; /* of the file; NULL: there is none */

static void put(size_t at, const char *bytes, size_t count)
{
    memcpy(lines + at, bytes, count);
    if (page != NULL) {
        memcpy(page + at, bytes, count);
    }
}

void lc_patch_turn(int line, char state)
{
    if (line > 0) {
        put((size_t)line, &state, 1);
    }
}

int lc_patch_note(const char *format, ...)
{
    char line[512];
    va_list words;
    va_start(words, format);
    (void)vsnprintf(line, sizeof line - 1u, format, words);
    va_end(words);
    size_t count = strcspn(line, "\n"), at = sizeof LC_PATCHES_MAGIC - 1u;
    line[count++] = '\n';
    const char before = line[0] == '+' ? '-' : '+'; /* installs come and go: lines are used again */
    while (at < used && (lines[at] != before || strncmp(lines + at + 1, line + 1, count - 1u) != 0)) {
        at += strcspn(lines + at, "\n") + 1u;
    }
    const size_t end = at + count;
    if (at >= used && (line[0] != '+' || end > LC_PATCHES_BYTES)) {
        return 0;
    }
    put(0, LC_PATCHES_MAGIC, sizeof LC_PATCHES_MAGIC - 1u);
    put(at, line, count);
    used = end > used ? end : used;
    return (int)at;
}

const char *lc_patches(void) { return lines; }

void lc_patches_open(const char *flight)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s.patches", flight);
    lc_patches_leave();
    const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0 && lc_set_aside(fd, 0, LC_PATCHES_BYTES) == 0) {
        void *base = mmap(NULL, LC_PATCHES_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        page = base != MAP_FAILED ? memcpy(base, lines, LC_PATCHES_BYTES) : NULL;
    }
    if (fd >= 0) {
        close(fd);
    }
}

void lc_patches_leave(void)
{
    if (page != NULL) {
        munmap(page, LC_PATCHES_BYTES);
        page = NULL;
    }
}
