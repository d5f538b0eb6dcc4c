/* A file of /proc or of a cgroup that stays open between readings.
 *
 * The program may close descriptors that it did not open (daemons do), and get the number for a file of its own: whether a
 * descriptor is still ours is asked before it is closed, and before it is read where the caller says so.
 */
#ifndef LOOPCANARY_KEPT_FILE_H
#define LOOPCANARY_KEPT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    int fd; /* 0: closed. Never a standard stream's number: opened files are moved above them */
    uint64_t device;
    uint64_t inode;
} lc_kept_file;

/* False: it cannot be opened. */
bool lc_kept_file_open(lc_kept_file *file, const char *path);
void lc_kept_file_close(lc_kept_file *file);
/* Whether the descriptor is the file's that was opened. */
bool lc_kept_file_is_ours(const lc_kept_file *file);
/* The file's beginning as it is now; 0: nothing. */
size_t lc_kept_file_read(const lc_kept_file *file, char *text, size_t room);

#endif
