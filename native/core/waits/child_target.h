/* Children of this process, by their command. See wait_target.h for what may be asked. */
#pragma once

#include <stdbool.h>

#include "core/waits/wait_target.h"

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
