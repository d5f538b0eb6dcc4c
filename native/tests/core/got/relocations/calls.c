/* A library that calls functions of others in every way; built once for each way a linker can bind it
 * (CMakeLists.txt). */
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>

typedef int (*poll_function)(struct pollfd *, nfds_t, int);

poll_function pointer_in_data = poll; /* the linker stores an address here, too; it is no call */

int call(void) { return poll(NULL, 0, 0); }
int call_by_data(void) { return pointer_in_data(NULL, 0, 0); }

/* Called, and its address taken: linkers make one entry of it, or two. */
typedef int (*ppoll_function)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
static const struct timespec no_time;

int call_of_two(void) { return ppoll(NULL, 0, &no_time, NULL); }
ppoll_function address_of_two(void) { return ppoll; }

int own(void) { return 1; }
int call_own(void) { return own(); }
