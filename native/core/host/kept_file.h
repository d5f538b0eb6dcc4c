/* A file that stays open: of /proc, of a cgroup, the flight file.
 *
 * The program may close descriptors that it did not open (daemons do), and get the number for a file of its
 * own: whether a descriptor is still ours is asked before it is read or closed. And it may count its
 * descriptors: ours have numbers above its own, and those that are needed again stay open where it may have
 * many. One that has nearly all it may have finds them as if we were not there: we take none of them, and
 * what we would close is closed when there is room.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    int fd; /* 0: closed. Never a standard stream's number */
    uint64_t device;
    uint64_t inode;
} lc_kept_file;

/* Takes over a descriptor, which gets a number above the program's; negative: none. False: there is none,
 * errno says why. */
bool lc_kept_file_take(lc_kept_file *file, int fd);
bool lc_kept_file_open(lc_kept_file *file, const char *path);
void lc_kept_file_close(lc_kept_file *file);
/* Whether the descriptor is the file's that was opened. */
bool lc_kept_file_is_ours(const lc_kept_file *file);
/* The file's beginning as it is now; 0: nothing, or it is another file. */
size_t lc_kept_file_read(const lc_kept_file *file, char *text, size_t room);
/* open(2) for reading; EMFILE where the process has nearly all descriptors that it may have. Any thread. */
int lc_open_unnoticed(const char *path, int flags);
/* close(2), or later. Any thread. */
void lc_close_unnoticed(int fd);
/* Reads a file's beginning by these two; how many bytes. */
size_t lc_read_unnoticed(const char *path, char *text, size_t room);
/* Closes descriptors that lc_close_unnoticed left open, if there is room by now. Any thread. */
void lc_close_left(void);
/* Closes the file in any case: the engine ends. */
void lc_close_all_left(void);
/* Whether the process may have so many descriptors that it will not miss those which stay open while
 * nothing goes on. */
bool lc_kept_files_may_stay(void);
