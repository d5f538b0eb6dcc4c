/* What of the program's, of its libraries' and of Python's is replaced by ours, written down where it is
 * installed: lines of text, beside the flight file while there is one (docs/internals/patches-format.md).
 * Nothing here fails. GIL held, but in lc_patches_leave inside fork(2). */
#pragma once

enum { LC_PATCHES_BYTES = 16384 };
#define LC_PATCHES_MAGIC "LCPATCH1\n"

/* + (it is in place), - (taken back) or ! (another tool has patched over it); then its kind, a blank, and
 * what is replaced. The last two change the line that says the same with a +. Answers where the line is;
 * 0: it has no room. */
__attribute__((format(printf, 1, 2))) int lc_patch_note(const char *format, ...);
/* The same by where its line is. */
void lc_patch_turn(int line, char state);

const char *lc_patches(void);

/* Makes the file (must not exist; mode 0600), where that can be; who removes the flight file removes it. */
void lc_patches_open(const char *flight);
void lc_patches_leave(void); /* idempotent */
