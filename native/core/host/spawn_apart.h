/* Starts another program that is no child of this process.
 *
 * The watched program may wait for any child (waitpid of -1), count its children, or handle SIGCHLD: it must not meet one that
 * it did not make. So a helper in between starts the new program and ends, without a signal (clone(2): exit signal 0); it is
 * waited for with __WCLONE, which plain waits do not see. If the watched program is the reaper of orphans (a container's
 * first process, PR_SET_CHILD_SUBREAPER), the new program is its child after all.
 */
#ifndef LOOPCANARY_SPAWN_APART_H
#define LOOPCANARY_SPAWN_APART_H

/* Executes `file` in a session of its own, with /dev/null as stdin and stdout, `log` (made with mode 0600, emptied) as stderr,
 * no other descriptor, every signal at its default. 0, or an errno: it was not started. Any thread; waits for the
 * execve (about a millisecond); allocates nothing. The caller's memory is used meanwhile, as by vfork. */
int lc_spawn_apart(const char *file, char *const argv[], char *const envp[], const char *log);

#endif
