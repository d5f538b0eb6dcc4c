#include "core/keeper/doorbell.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static int write_byte(int fd)
{
    struct stat facts;
    ssize_t wrote;
    if (fstat(fd, &facts) != 0) {
        return errno;
    }
    if (!S_ISFIFO(facts.st_mode) || facts.st_uid != geteuid()) {
        return EPERM;
    }
    do {
        wrote = write(fd, "!", 1);
    } while (wrote < 0 && errno == EINTR);
    /* A full one has been rung often enough; a keeper that went away since is none (EPIPE, its signal is blocked). */
    return wrote == 1 || errno == EAGAIN ? 0 : errno == EPIPE ? ENXIO : errno;
}

int lc_doorbell_ring(const char *path)
{
    const int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY);
    if (fd < 0) {
        return errno;
    }
    const int error = write_byte(fd);
    close(fd);
    return error;
}
