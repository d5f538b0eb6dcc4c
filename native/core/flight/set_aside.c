#include "core/flight/set_aside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096u

uint64_t lc_room(const struct statvfs *folder, uint64_t made)
{
    const unsigned __int128 half = ((unsigned __int128)folder->f_bavail * folder->f_frsize + made) / 2u;
    return folder->f_blocks == 0 || half > UINT64_MAX ? UINT64_MAX : (uint64_t)half;
}

uint64_t lc_room_beside(int fd)
{
    struct statvfs folder;
    return fstatvfs(fd, &folder) == 0 ? lc_room(&folder, 0) : UINT64_MAX;
}

/* Of a part of the file that holds no data yet. */
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

/* posix_fallocate writes zeros where the filesystem cannot set blocks aside: slow, but as safe. So do we
 * where the call itself is refused (a seccomp filter). */
int lc_set_aside(int fd, uint64_t offset, uint64_t bytes)
{
    int error = 0;
    if (bytes > lc_room_beside(fd)) {
        return ENOSPC;
    }
    do {
        error = posix_fallocate(fd, (off_t)offset, (off_t)bytes);
    } while (error == EINTR);
    const bool is_refused = error == EPERM || error == EACCES || error == ENOSYS || error == EOPNOTSUPP;
    return is_refused ? write_zeros(fd, offset, bytes) : error;
}

void lc_let_go_of_pages(void *base, size_t bytes)
{
    if (mmap(base, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
             0) == MAP_FAILED) {
        munmap(base, bytes);
    }
}
