#include "core/waits/wait_target.h"

#include <sys/syscall.h>

static lc_syscall_shape at(lc_shape_kind kind, uint8_t first) { return (lc_syscall_shape){kind, first}; }

/* Calls that newer machines (aarch64) never had, beside those that took their place. */
static lc_syscall_shape of_old_call(int64_t number)
{
    switch (number) {
#ifdef SYS_open
    case SYS_open:
    case SYS_creat:
    case SYS_stat:
    case SYS_lstat:
    case SYS_access:
    case SYS_unlink:
    case SYS_mkdir:
    case SYS_rmdir:
    case SYS_rename:
    case SYS_link:
    case SYS_symlink:
    case SYS_readlink:
    case SYS_chmod:
    case SYS_chown:
    case SYS_lchown:
    case SYS_utimes:
        return at(LC_SHAPE_PATH, 0);
#endif
#ifdef SYS_getdents
    case SYS_getdents:
        return at(LC_SHAPE_DESCRIPTOR, 0);
#endif
#ifdef SYS_poll
    case SYS_poll:
        return at(LC_SHAPE_POLL, 0);
#endif
#ifdef SYS_select
    case SYS_select:
        return at(LC_SHAPE_SELECT, 0);
#endif
#ifdef SYS_epoll_wait
    case SYS_epoll_wait:
        return at(LC_SHAPE_EPOLL, 0);
#endif
    default:
        return at(LC_SHAPE_NONE, 0);
    }
}

static lc_syscall_shape of_path_call(int64_t number)
{
    switch (number) {
    case SYS_truncate:
    case SYS_statfs:
    case SYS_chdir:
    case SYS_setxattr:
    case SYS_getxattr:
    case SYS_lgetxattr:
    case SYS_listxattr:
    case SYS_umount2:
        return at(LC_SHAPE_PATH, 0);
    case SYS_openat:
#ifdef SYS_openat2
    case SYS_openat2:
#endif
#ifdef SYS_newfstatat
    case SYS_newfstatat:
#endif
    case SYS_statx:
    case SYS_unlinkat:
    case SYS_mkdirat:
    case SYS_mknodat:
#ifdef SYS_renameat
    case SYS_renameat:
#endif
    case SYS_renameat2:
    case SYS_linkat:
    case SYS_readlinkat:
    case SYS_faccessat:
#ifdef SYS_faccessat2
    case SYS_faccessat2:
#endif
    case SYS_fchmodat:
    case SYS_fchownat:
    case SYS_utimensat:
        return at(LC_SHAPE_PATH_AT, 0);
    case SYS_symlinkat: /* the text, then the path of the link */
        return at(LC_SHAPE_PATH_AT, 1);
    default:
        return of_old_call(number);
    }
}

lc_syscall_shape lc_syscall_shape_of(int64_t number)
{
    switch (number) {
    case SYS_read:
    case SYS_write:
    case SYS_readv:
    case SYS_writev:
    case SYS_pread64:
    case SYS_pwrite64:
    case SYS_preadv:
    case SYS_pwritev:
    case SYS_preadv2:
    case SYS_pwritev2:
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_sync_file_range:
    case SYS_syncfs:
    case SYS_ftruncate:
    case SYS_fallocate:
    case SYS_fadvise64:
    case SYS_readahead:
    case SYS_lseek:
    case SYS_flock:
    case SYS_fcntl:
    case SYS_ioctl:
    case SYS_fstat:
    case SYS_fstatfs:
    case SYS_fchmod:
    case SYS_fchown:
    case SYS_getdents64:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_accept:
    case SYS_accept4:
    case SYS_shutdown:
    case SYS_splice:
    case SYS_tee:
    case SYS_vmsplice:
    case SYS_sendfile: /* to the descriptor that it writes to: a socket, mostly, and that is what is slow */
    case SYS_copy_file_range:
        return at(LC_SHAPE_DESCRIPTOR, 0);
    case SYS_connect:
        return at(LC_SHAPE_CONNECT, 0);
    case SYS_sendto:
        return at(LC_SHAPE_SEND_TO, 0);
    case SYS_ppoll:
        return at(LC_SHAPE_POLL, 0);
    case SYS_pselect6:
        return at(LC_SHAPE_SELECT, 0);
    case SYS_epoll_pwait:
#ifdef SYS_epoll_pwait2
    case SYS_epoll_pwait2:
#endif
        return at(LC_SHAPE_EPOLL, 0);
    case SYS_wait4:
        return at(LC_SHAPE_WAIT_PID, 0);
    case SYS_waitid:
        return at(LC_SHAPE_WAIT_ID, 0);
    default:
        return of_path_call(number);
    }
}
