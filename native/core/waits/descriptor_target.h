/* What a descriptor of this process is. See wait_target.h for what may be asked. */
#pragma once

#include <stddef.h>

#include "core/waits/wait_target.h"

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
