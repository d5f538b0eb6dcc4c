/* The keeper's page of another process's flight file, as the keeper writes it. In the keeper's process.
 *
 * The process may lie about its file, and cut it short at any time: a store through a mapping would then be a
 * SIGBUS, which ends the keeper of all others. So words and text are written by pwrite(2), which meets the
 * pages that the process has mapped (of tmpfs as of a disk), and the bell is rung by the kernel:
 * FUTEX_WAKE_OP adds and wakes, and a page that is gone is an error. A word may be seen half written; `taken`
 * and `text_number` are compared with the one value that counts, so half of it is none.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    int fd;      /* negative: closed */
    void *bells; /* the page of memory with the bell, mapped; never looked at here */
    size_t mapped;
    uint64_t at; /* of the keeper's page, in the file */
} lc_keeper_page;

/* Opens the page of the file at `path`, and rings if a keeper before has put a text that was not written
 * yet. 0, or an errno; EINVAL: no flight file of this user and version, and `why` says what is wrong. */
int lc_keeper_page_open(lc_keeper_page *page, const char *path, const char **why);
void lc_keeper_page_close(lc_keeper_page *page);

/* Each: 0, or an errno. */

/* The stall of this serial in slot `slot` (< LC_SLOT_COUNT) is stored. */
int lc_keeper_page_take(const lc_keeper_page *page, uint64_t slot, uint64_t serial);
/* The hang of this serial in slot `slot` (< LC_SLOT_COUNT) was judged: a text comes, or is not wanted. */
int lc_keeper_page_tell(const lc_keeper_page *page, uint64_t slot, uint64_t serial);
/* This process serves the file, and looked at `now_ns` (monotonic). */
int lc_keeper_page_beat(const lc_keeper_page *page, uint64_t now_ns);
/* Puts a text for the program's stderr, and rings. EAGAIN: the one before is not written yet; EMSGSIZE: it
 * is too long. */
int lc_keeper_page_say(const lc_keeper_page *page, const char *text, size_t bytes);
/* The end of the process is stored, and all texts were put; rings. */
int lc_keeper_page_set_closed(const lc_keeper_page *page);
/* A command's, not the keeper's: it has put an errand beside the file. */
int lc_keeper_page_errand(const lc_keeper_page *page);
