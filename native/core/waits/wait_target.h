/* What a sleeping thread's system call works on: a file, the peer of a socket, a child, by name.
 *
 * The watchdog's thread; no allocation, no lock. Only things that the kernel knows by itself are asked for:
 * the path that a descriptor was opened by (readlink of /proc/self/fd, which touches no file system),
 * addresses of sockets, lists of children. Nothing outside of /proc is opened, looked up or resolved, so a
 * dead file server or name server cannot hold the watchdog up.
 */
#pragma once

#include <stdint.h>

#include "core/flight/flight_format.h"
#include "core/memory/memory_reader.h"
#include "core/host/proc_text.h"

typedef struct {
    lc_target_kind kind;
    uint32_t pid; /* of the child, 0 none */
    uint32_t length;
    char text[LC_STRING_MAX]; /* bytes as the kernel has them: not always UTF-8 */
} lc_target;

/* The target of thread `tid`'s call; kind LC_TARGET_NONE where it has none or it is not known. True of the
 * moment only if the thread is in the same call afterwards: the caller looks again. */
void lc_wait_target(const lc_memory_reader *reader, uint64_t tid, const lc_syscall_fields *call,
                    lc_target *out);
