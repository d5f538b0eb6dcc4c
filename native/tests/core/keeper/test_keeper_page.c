/* The keeper's page from the keeper's side: what reaches the process, what is refused, and that no liar
 * ends the keeper. */
#include "core/keeper/keeper_page.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/core/lane/bench_lane.h"

static stage s;
static const char *why;

static lc_keeper_page opened(void)
{
    lc_keeper_page page;
    CHECK(lc_keeper_page_open(&page, s.path, &why) == 0 && why == NULL);
    return page;
}

static uint32_t bell(void) { return atomic_load(&s.flight.keeper->bell); }

TEST(words_reach_the_process)
{
    lc_keeper_page page = opened();
    CHECK(lc_keeper_page_beat(&page, 77) == 0);
    CHECK(LC_LOAD(s.flight.keeper->pid) == (uint64_t)getpid() && LC_LOAD(s.flight.keeper->beat_ns) == 77);
    CHECK(lc_keeper_page_take(&page, 0, 5) == 0 &&
          lc_keeper_page_take(&page, LC_SLOT_COUNT - 1u, UINT64_MAX) == 0);
    CHECK(LC_LOAD(s.flight.keeper->taken[0]) == 5 && LC_LOAD(s.flight.keeper->taken[1]) == 0);
    CHECK(LC_LOAD(s.flight.keeper->taken[LC_SLOT_COUNT - 1u]) == UINT64_MAX);
    CHECK(bell() == 0);
    CHECK(lc_keeper_page_set_closed(&page) == 0 && LC_LOAD(s.flight.keeper->closed) == 1 && bell() == 1);
    lc_keeper_page_close(&page);
}

TEST(one_text_at_a_time)
{
    static char longest[LC_KEEPER_TEXT_BYTES + 1];
    const uint32_t before = bell();
    lc_keeper_page page = opened();
    CHECK(lc_keeper_page_say(&page, longest, sizeof longest) == EMSGSIZE);
    CHECK(LC_LOAD(s.flight.keeper->text_number) == 0 && bell() == before);
    CHECK(lc_keeper_page_say(&page, "hello\n", 6) == 0 && bell() == before + 1u);
    CHECK(LC_LOAD(s.flight.keeper->text_number) == 1 && LC_LOAD(s.flight.keeper->text_bytes) == 6);
    CHECK(memcmp(s.flight.keeper->text, "hello\n", 6) == 0);
    CHECK(lc_keeper_page_say(&page, "again\n", 6) == EAGAIN &&
          memcmp(s.flight.keeper->text, "hello\n", 6) == 0);
    LC_RELEASE(s.flight.header->text_written, 1);
    CHECK(lc_keeper_page_say(&page, longest, LC_KEEPER_TEXT_BYTES) == 0);
    CHECK(LC_LOAD(s.flight.keeper->text_number) == 2 &&
          LC_LOAD(s.flight.keeper->text_bytes) == LC_KEEPER_TEXT_BYTES);
    lc_keeper_page_close(&page);
}

TEST(the_next_keeper_rings_for_a_text_that_waits)
{
    const uint32_t before = bell();
    lc_keeper_page page = opened();
    CHECK(bell() == before + 1u && lc_keeper_page_say(&page, "x\n", 2) == EAGAIN);
    lc_keeper_page_close(&page);
    LC_RELEASE(s.flight.header->text_written, 2);
    page = opened();
    CHECK(bell() == before + 1u);
    lc_keeper_page_close(&page);
}

static void *sleeper(void *seen)
{
    while (bell() == *(uint32_t *)seen) {
        lc_bell_wait_shared(&s.flight.keeper->bell, *(uint32_t *)seen, LC_NO_DEADLINE);
    }
    return NULL;
}

/* If the ring were lost, this would not end. */
TEST(a_ring_wakes_the_process)
{
    lc_keeper_page page = opened();
    for (int i = 0; i < 100; i++) {
        uint32_t seen = bell();
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, sleeper, &seen) == 0);
        CHECK(lc_keeper_page_set_closed(&page) == 0);
        pthread_join(thread, NULL);
    }
    lc_keeper_page_close(&page);
}

/* A copy of the file, with one change. */
static const char *copy(void (*change)(lc_header *))
{
    static char path[80];
    lc_header header;
    memcpy(&header, s.flight.header, sizeof header);
    if (change != NULL) {
        change(&header);
    }
    snprintf(path, sizeof path, "%s.copy", s.path);
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0 && pwrite(fd, &header, sizeof header, 0) == sizeof header);
    CHECK(ftruncate(fd, (off_t)s.flight.bytes) == 0 && close(fd) == 0);
    return path;
}

static lc_section *section(lc_header *h) { return &h->sections[LC_SECTION_KEEPER]; }
static void no_change(lc_header *h) { (void)h; }
static void no_magic(lc_header *h) { h->magic[0] = 'x'; }
static void big_endian(lc_header *h) { h->byte_order = 0x04030201; }
static void older(lc_header *h) { h->version = 1; }
static void newer(lc_header *h) { h->version = 3; }
static void in_the_header(lc_header *h) { section(h)->offset = 0; }
static void unaligned(lc_header *h) { section(h)->offset -= 8; }
static void beyond(lc_header *h) { section(h)->offset += LC_KEEPER_ALIGNMENT; }
static void around(lc_header *h) { section(h)->offset = UINT64_MAX & ~(uint64_t)(LC_KEEPER_ALIGNMENT - 1u); }
static void narrow(lc_header *h) { section(h)->stride = 8; }
static void wide(lc_header *h) { section(h)->stride = UINT64_MAX; }
static void none(lc_header *h) { section(h)->count = 0; }
static void many(lc_header *h) { section(h)->count = UINT64_MAX; }

TEST(what_is_no_file_of_ours_is_refused)
{
    void (*const changes[])(lc_header *) = {no_magic, big_endian, older,  newer, in_the_header, unaligned,
                                            beyond,   around,     narrow, wide,  none,          many};
    lc_keeper_page page;
    const unsigned descriptors = open_descriptors();
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        CHECK(lc_keeper_page_open(&page, copy(changes[i]), &why) == EINVAL && why != NULL && page.fd < 0);
        lc_keeper_page_close(&page);
    }
    CHECK(open_descriptors() == descriptors);
    CHECK(lc_keeper_page_open(&page, copy(no_change), &why) == 0);
    lc_keeper_page_close(&page);
    unlink(copy(NULL));
}

TEST(only_regular_files_by_their_own_name)
{
    char other[80];
    lc_keeper_page page;
    snprintf(other, sizeof other, "%s.other", s.path);
    unlink(other);
    CHECK(lc_keeper_page_open(&page, other, &why) == ENOENT);
    CHECK(symlink(s.path, other) == 0 && lc_keeper_page_open(&page, other, &why) == ELOOP &&
          unlink(other) == 0);
    CHECK(mkfifo(other, 0600) == 0 && lc_keeper_page_open(&page, other, &why) == EINVAL &&
          unlink(other) == 0);
    CHECK(mkdir(other, 0700) == 0 && lc_keeper_page_open(&page, other, &why) == EISDIR && rmdir(other) == 0);
    CHECK(lc_keeper_page_open(&page, "/dev/zero", &why) == EINVAL);
    const int empty = open(other, O_WRONLY | O_CREAT | O_EXCL, 0600);
    CHECK(empty >= 0 && lc_keeper_page_open(&page, other, &why) == EINVAL && unlink(other) == 0);
    close(empty);
    if (geteuid() == 0) {
        const char *path = copy(NULL);
        CHECK(chown(path, 12345, -1) == 0 && lc_keeper_page_open(&page, path, &why) == EINVAL &&
              unlink(path) == 0);
    }
}

TEST(a_file_that_is_cut_short_is_an_error)
{
    lc_keeper_page page;
    const char *path = copy(NULL);
    CHECK(lc_keeper_page_open(&page, path, &why) == 0);
    CHECK(truncate(path, 0) == 0);
    CHECK(lc_keeper_page_say(&page, "x\n", 2) == ENODATA);
    CHECK(lc_keeper_page_set_closed(&page) == 0);
    CHECK(truncate(path, LC_HEADER_BYTES) == 0);
    CHECK(lc_keeper_page_say(&page, "x\n", 2) == ENODATA);
    lc_keeper_page_close(&page);
    unlink(path);
}

static _Atomic bool over;

static void *cut_again_and_again(void *path)
{
    while (!atomic_load(&over)) {
        CHECK(truncate(path, 0) == 0);
    }
    return NULL;
}

/* A store through the mapping would be a SIGBUS. */
TEST(a_ring_on_a_page_that_is_gone_does_no_harm)
{
    enum { RINGS = 2000 };
    static char path[80];
    lc_keeper_page page;
    pthread_t liar;
    strcpy(path, copy(NULL));
    CHECK(lc_keeper_page_open(&page, path, &why) == 0);
    CHECK(pthread_create(&liar, NULL, cut_again_and_again, path) == 0);
    for (int i = 0; i < RINGS; i++) {
        CHECK(lc_keeper_page_set_closed(&page) == 0);
    }
    atomic_store(&over, true);
    pthread_join(liar, NULL);
    lc_keeper_page_close(&page);
    unlink(path);
}

int main(void)
{
    stage_open(&s);
    run_tests();
    stage_close(&s);
    return 0;
}
