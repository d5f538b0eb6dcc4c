/* What the arguments of a system call refer to: which calls can wait for something that has a name, and
 * where that name is found. Pure data; the numbers are this machine's (SYS_...). */
#pragma once

#include <stdint.h>

typedef enum {
    LC_SHAPE_NONE = 0,
    LC_SHAPE_DESCRIPTOR, /* `first`: the descriptor */
    LC_SHAPE_PATH,       /* `first`: address of a path */
    LC_SHAPE_PATH_AT,    /* `first`: descriptor of a folder, the next one: address of a path */
    LC_SHAPE_CONNECT,    /* descriptor, address of a socket address, its length */
    LC_SHAPE_SEND_TO,    /* descriptor, ..., fifth and sixth: socket address and length, or 0 */
    LC_SHAPE_POLL,       /* address of pollfd entries, their number */
    LC_SHAPE_SELECT,     /* highest descriptor and one, addresses of three sets */
    LC_SHAPE_EPOLL,      /* descriptor of an epoll set */
    LC_SHAPE_WAIT_PID,   /* wait4: pid, -1 any child */
    LC_SHAPE_WAIT_ID     /* waitid: kind of id, id */
} lc_shape_kind;

typedef struct {
    lc_shape_kind kind;
    uint8_t first; /* index of the argument */
} lc_syscall_shape;

/* `number`: of the call, or LC_SYSCALL_*. */
lc_syscall_shape lc_syscall_shape_of(int64_t number);
