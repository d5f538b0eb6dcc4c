/* Starts another program that shares nothing with this process once it runs.
 *
 * The program is never forked: it may have tens of GB mapped, whose page tables a fork copies. A helper is
 * cloned into its memory, executes at once, and opens nothing on a disk. Until it has executed it is a
 * process with the rights that this one had at the clone. Where another thread changes the users or groups of
 * this process meanwhile, it is killed first.
 *
 * The watched program may wait for any child (waitpid of -1), count its children, or handle SIGCHLD: it must
 * not meet one that it did not make. So the new program is an orphan. Where the watched program is itself the
 * reaper of orphans (a container's first process, PR_SET_CHILD_SUBREAPER), the new program is its ordinary
 * child.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Executes `file` in a session of its own, with /dev/null as stdin, stdout and stderr, no other descriptor,
 * every signal at its default, in the folder "/", with nice 10 and the umask 077. Behind a seccomp filter its
 * priority is the program's.
 *
 * 0: it runs. EINPROGRESS: the helper was killed, as another thread changed the users or groups, or as the
 * disk of `file` did not answer for some seconds. Then it ends when the disk answers; until then none is
 * started. Or another errno. Any thread; waits for the execve with the caller's signals open; allocates
 * nothing. */
int lc_spawn_apart(const char *file, char *const argv[], char *const envp[]);

/* Whether it was started so, is a child of this process, and was not waited for, as far as that is known.
 * Any thread. */
bool lc_is_spawned_child(pid_t pid);

/* Waits for those children that have ended. Any thread; does not block. */
void lc_spawned_children_bury(void);
