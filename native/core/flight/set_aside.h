/* Room on the device of a file, and the end of its pages. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/statvfs.h>

/* How many bytes of a folder loopcanary may take in all, where it has `made` already. Half of the space that
 * would be free without them stays free: on a full device, a program's own sparse file would end it by
 * SIGBUS. UINT64_MAX: there is no limit (a tmpfs without a size has 0 blocks). */
uint64_t lc_room(const struct statvfs *folder, uint64_t made);
uint64_t lc_room_beside(int fd); /* the same of a file's folder; any thread; allocates nothing */

/* Reserves the blocks of a part of a new file, which grows to the end of that part, so that a later store
 * to a mapping of it raises no SIGBUS. Returns 0 or an errno (ENOSPC, also where half of the free space
 * would not stay free). Any thread. */
int lc_set_aside(int fd, uint64_t offset, uint64_t bytes);

/* Replaces a file's pages by private memory, for code that may still store to them. If the process may have
 * no more memory, unmaps the pages. Signal-safe. */
void lc_let_go_of_pages(void *base, size_t bytes);
