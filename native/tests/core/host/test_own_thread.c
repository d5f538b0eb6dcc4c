/* A thread of ours gives up what the main thread gave up, and says where it could not. */
#include "core/host/own_thread.h"

#include <linux/capability.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/check.h"

static pthread_barrier_t turn;
static bool follows[3];
static struct __user_cap_data_struct left[_LINUX_CAPABILITY_U32S_3];

static void capabilities(int call, struct __user_cap_data_struct sets[])
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    CHECK(syscall(call, &header, sets) == 0);
}

static void *follow(void *unused)
{
    for (size_t i = 0; i < sizeof follows / sizeof *follows; i++) {
        pthread_barrier_wait(&turn);
        follows[i] = lc_own_rights_follow();
        pthread_barrier_wait(&turn);
    }
    capabilities(SYS_capget, left);
    pthread_barrier_wait(&turn);
    return unused;
}

static void let_it_follow(void)
{
    pthread_barrier_wait(&turn);
    pthread_barrier_wait(&turn);
}

TEST(it_says_whether_it_has_more)
{
    const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
    struct rlimit before, no_file;
    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0 && pthread_barrier_init(&turn, NULL, 2) == 0);
    no_file = (struct rlimit){0, before.rlim_max};
    CHECK(lc_own_thread_start(follow, NULL, false) == 0);
    let_it_follow();
    capabilities(SYS_capset, (struct __user_cap_data_struct *)none);
    CHECK(setrlimit(RLIMIT_NOFILE, &no_file) == 0);
    let_it_follow();
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
    let_it_follow();
    pthread_barrier_wait(&turn);
    CHECK(follows[0] && !follows[1] && follows[2]);
    CHECK(left[0].permitted == 0 && left[0].effective == 0 && left[1].permitted == 0);
}

int main(void) { return run_tests(); }
