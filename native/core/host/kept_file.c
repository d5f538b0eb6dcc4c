#include "core/host/kept_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* A program without standard streams may open one at any time and expects its number. */
static int above_the_streams(int fd)
{
    if (fd < 0 || fd > STDERR_FILENO) {
        return fd;
    }
    const int moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(fd);
    return moved;
}

bool lc_kept_file_open(lc_kept_file *file, const char *path)
{
    struct stat facts;
    const int fd = above_the_streams(open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY));
    *file = (lc_kept_file){0};
    if (fd < 0) {
        return false;
    }
    if (fstat(fd, &facts) != 0) {
        close(fd);
        return false;
    }
    *file = (lc_kept_file){fd, (uint64_t)facts.st_dev, (uint64_t)facts.st_ino};
    return true;
}

bool lc_kept_file_is_ours(const lc_kept_file *file)
{
    struct stat facts;
    return file->fd > 0 && fstat(file->fd, &facts) == 0 && (uint64_t)facts.st_dev == file->device &&
           (uint64_t)facts.st_ino == file->inode;
}

void lc_kept_file_close(lc_kept_file *file)
{
    if (lc_kept_file_is_ours(file)) {
        close(file->fd);
    }
    *file = (lc_kept_file){0};
}

size_t lc_kept_file_read(const lc_kept_file *file, char *text, size_t room)
{
    const ssize_t got = file->fd > 0 ? pread(file->fd, text, room, 0) : -1;
    return got < 0 ? 0 : (size_t)got;
}
