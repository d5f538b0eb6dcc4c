/* Starts another program that is no child of this process.
 *
 * The watched program may wait for any child (waitpid of -1), count its children, or handle SIGCHLD: it must not meet one that
 * it did not make. So a helper in between starts the new program and ends, without a signal (clone(2): exit signal 0); it is
 * waited for with __WCLONE, which plain waits do not see. Where the watched program is itself the reaper of orphans (a container's
 * first process, PR_SET_CHILD_SUBREAPER), the helper stays until the new program ends, and is the orphan's reaper in its place. The reaper
 * may also be another process, a server's master in a container: then it meets an orphan as it does any other.
 */
#ifndef LOOPCANARY_SPAWN_APART_H
#define LOOPCANARY_SPAWN_APART_H

/* Executes `file` in a session of its own, with /dev/null as stdin and stdout, `log` (made with mode 0600, emptied) as stderr,
 * no other descriptor, every signal at its default, in the folder "/", with nice 10 and the umask 077. 0, or an errno: it was not started (ENOSYS: a reaper, and Linux
 * before 5.9). Any thread; waits for the
 * execve (about a millisecond); allocates nothing. The caller's memory is used meanwhile, as by vfork. */
int lc_spawn_apart(const char *file, char *const argv[], char *const envp[], const char *log);

#endif
