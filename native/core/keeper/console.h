/* Writes a keeper's texts to the program's stderr, on a thread of ours, as reporters/terminal.py does in
 * the program's own way. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LC_CONSOLE_PIECE = 4096 }; /* at most so much in one write(2): PIPE_BUF of Linux */

typedef struct {
    /* of the file that descriptor 2 was at the start; with inode 0: nothing may be written */
    _Atomic uint64_t device;
    _Atomic uint64_t inode;
    bool is_stuck; /* the reader has stopped: it is not waited for once more */
    size_t rest_bytes;
    char rest
        [LC_CONSOLE_PIECE]; /* rest of a piece that was begun: half an escape sequence must not stay alone */
} lc_console;

/* From now on texts go to descriptor 2, while it is this file. (0, 0): they go nowhere. Any thread. */
void lc_console_allow(lc_console *console, uint64_t device, uint64_t inode);

/* Writes the whole lines of a text; on a terminal after a line break, for what the program may have begun
 * there. Waits a fifth of a second at most for a reader of a pipe, socket or terminal. False: not all of
 * it could be written, now or ever. One thread. */
bool lc_console_write(lc_console *console, const char *text, size_t bytes);
