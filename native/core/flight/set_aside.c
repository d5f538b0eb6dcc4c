#include "core/flight/set_aside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

#define PAGE 4096u

/* What nobody has stored to yet. */
static int write_zeros(int fd, uint64_t offset, uint64_t bytes)
{
    static const char zeros[PAGE];
    uint64_t done = 0;
    while (done < bytes) {
        const uint64_t left = bytes - done;
        const ssize_t wrote = pwrite(fd, zeros, left < PAGE ? left : PAGE, (off_t)(offset + done));
        if (wrote > 0) {
            done += (uint64_t)wrote;
        } else if (wrote == 0 || errno != EINTR) {
            return wrote == 0 ? ENOSPC : errno;
        }
    }
    return 0;
}

/* posix_fallocate writes zeros where the filesystem cannot set blocks aside: slow, but as safe. So do we where the call itself
 * is refused (a seccomp filter). */
int lc_set_aside(int fd, uint64_t offset, uint64_t bytes)
{
    int error;
    do {
        error = posix_fallocate(fd, (off_t)offset, (off_t)bytes);
    } while (error == EINTR);
    const bool is_refused = error == EPERM || error == EACCES || error == ENOSYS || error == EOPNOTSUPP;
    return is_refused ? write_zeros(fd, offset, bytes) : error;
}
