/* Starts another program that is nobody's child here.
 *
 * The watched program may wait for any child of its own (waitpid of -1), count its children, or handle SIGCHLD: it must
 * not meet one that it did not make. So the new program is the child of one that has ended: a helper in between, which
 * ends without a signal (clone(2): exit signal 0) and is waited for with __WCLONE, by which plain waits pass. Where the watched
 * program is the reaper of orphans (a container's first process, PR_SET_CHILD_SUBREAPER), it is the program's child after all.
 */
#ifndef LOOPCANARY_SPAWN_APART_H
#define LOOPCANARY_SPAWN_APART_H

/* Executes `file` in a session of its own, with /dev/null as stdin and stdout, `log` (made with mode 0600, emptied) as stderr,
 * no other descriptor, every signal at its default. 0, or an errno: it was not started. Any thread; waits for the
 * execve (about a millisecond); allocates nothing. The caller's memory is used meanwhile, as by vfork. */
int lc_spawn_apart(const char *file, char *const argv[], char *const envp[], const char *log);

#endif
