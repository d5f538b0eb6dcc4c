/* What a sleeping thread's system call works on: a file, the peer of a socket, a child, by name.
 *
 * The watchdog's thread; no allocation, no lock. Only things that the kernel knows by itself are asked for:
 * the path that a descriptor was opened by (readlink of /proc/self/fd, which touches no file system),
 * addresses of sockets, lists of children. Nothing outside of /proc is opened, looked up or resolved, so a
 * dead file server or name server cannot hold the watchdog up.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
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

/* ---- descriptor_target.c ----------------------------------------------------------------------------
 * What a descriptor of this process is. See wait_target.h for what may be asked. */

void lc_descriptor_target(uint64_t fd, lc_target *out);

/* "/proc/<owner>/fd/<fd>" read as a link. Length, 0 unknown. `owner`: 0 this process. */
uint32_t lc_descriptor_link(uint32_t owner, uint64_t fd, char *text, uint32_t room);

/* Names of sockets. No resolving, ever. */

#define LC_SOCKET_ADDRESS_MAX 128u /* sizeof(struct sockaddr_storage) */

/* "192.0.2.1:80", "[2001:db8::1]:80", the path of a unix socket, "@name" of an abstract one. Pure.
 * Answers the text's length, 0 where the address names nothing (also a unix socket without a name). */
uint32_t lc_socket_address_text(const void *address, size_t bytes, char *text, size_t room);

/* The peer of a socket of this process, of one that is still connecting too; where there is none, "bound to "
 * and the address it is bound to. 0 where neither is known. Does not block: three system calls at most that
 * read words of the socket. */
uint32_t lc_socket_peer_text(int fd, char *text, size_t room);

/* ---- child_target.c ---------------------------------------------------------------------------------
 * Children of this process, by their command. See wait_target.h for what may be asked. */

/* Writes the command line of any process, words with blanks between them, or its name; not NUL-terminated.
 * Returns how many bytes; 0: there is no such process. */
uint32_t lc_process_command(uint64_t pid, char *text, uint32_t room);

/* The child `pid`; LC_TARGET_NONE if it is not a child of this process. */
void lc_child_target(uint64_t pid, lc_target *out);

/* The only child that this process has; LC_TARGET_NONE if it has none or several, or too many threads to
 * tell. */
void lc_only_child_target(lc_target *out);

/* Turns a pipe (its kernel's name in `target`) into the child of thread `tid` that has the other end as its
 * standard input, output or error; leaves it as it is if there is none. */
void lc_pipe_to_child(uint64_t tid, lc_target *target);

/* ---- syscall_shape.c --------------------------------------------------------------------------------
 * What the arguments of a system call refer to: which calls can wait for something that has a name, and
 * where that name is found. Pure data; the numbers are this machine's (SYS_...). */

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

/* ---- closed_process.c: whether the threads of this process wait for nothing but each other ----------- */

typedef struct {
    uint64_t cpu_ns; /* of all threads but our own */
    /* each of them sleeps in a futex of this process, without a timeout: until another one wakes it */
    bool is_closed;
    bool is_known; /* false: there are too many, or the kernel does not tell */
} lc_process_waits;

/* Looks at all threads but our own; not at more of them than it takes to see that the process is not closed, unless
 * `whole`. `main_polls`: the main one may be in a poll of a minute or more instead, and others may read the terminal or standard input
 * (an asyncio loop that ends waits for its executor). Some 20 us a thread; no allocation, no lock. */
void lc_process_waits_look(bool main_polls, bool whole, lc_process_waits *out);

/* Whether the call is a wait for a futex of this process that has no timeout. */
bool lc_waits_for_own_futex(const lc_syscall_fields *call);
