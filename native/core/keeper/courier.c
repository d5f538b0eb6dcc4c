#include "core/keeper/courier.h"

#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "core/host/own_thread.h"
#include "core/host/spawn_apart.h"
#include "core/lane/lane.h"

#define SECOND_NS UINT64_C(1000000000)
#define IDLE_NS (10u * SECOND_NS)      /* the thread ends when nothing was owed for this time */
#define RING_PAUSE_NS (2u * SECOND_NS) /* until the next ring, if nothing was settled by then; doubles */
#define RING_PAUSE_MOST_NS (60u * SECOND_NS)
/* while a keeper is being started: it may not find the flight file by itself */
#define STARTING_PAUSE_NS (SECOND_NS / 10u)
/* until the next start; doubles, as a keeper that ended at once may do so again */
#define START_PAUSE_NS (5u * SECOND_NS)
#define START_PAUSE_MOST_NS (300u * SECOND_NS)
#define GOOD_LIFE_NS (900u * SECOND_NS) /* a keeper that was started longer ago did not end at once */
/* no started keeper has answered for this time: there will be no keeper */
#define SILENCE_NS (20u * SECOND_NS)
#define DEAF_NS                                                                                              \
    (60u * SECOND_NS) /* a keeper hears the bell, and does nothing for this time: it was stopped */
#define NAP_NS (SECOND_NS / 100u) /* between two looks, however often the page's bell is rung */

void lc_courier_open(lc_courier *c, lc_flight *flight)
{
    c->flight = flight;
    c->root = lc_process_root();
    c->ring_pause_ns = RING_PAUSE_NS;
    c->next_ring_ns = LC_NO_DEADLINE;
    c->started_ns = 0;
    c->start_error = 0;
    c->start_pause_ns = START_PAUSE_NS;
    c->silent_ns = 0;
    atomic_store(&c->refusal, 0);
    c->console.is_stuck = false;
    c->console.rest_bytes = 0;
    atomic_store(&c->word_bytes, 0);
    atomic_store(&c->done, atomic_load(&c->asked));
    atomic_store(&c->outcome, 0);
}

/* ---- the bell --------------------------------------------------------------------------------------
 *
 * The bell of a store's keeper: a fifo in memory, whose reading end the keeper holds open. */

enum { LINE_MAX_BYTES = 256 }; /* less than PIPE_BUF: lines are not mixed */

static int write_line(int fd, const char *name)
{
    char line[LINE_MAX_BYTES];
    const size_t length = strlen(name), bytes = length < sizeof line ? length : 0u; /* no name is longer */
    struct stat facts;
    ssize_t wrote;
    memcpy(line, name, bytes);
    line[bytes] = '\n';
    if (fstat(fd, &facts) != 0) {
        return errno;
    }
    if (!S_ISFIFO(facts.st_mode) || facts.st_uid != geteuid()) {
        return EPERM;
    }
    do {
        wrote = write(fd, line, bytes + 1u);
    } while (wrote < 0 && errno == EINTR);
    /* A full fifo was rung often enough. EPIPE: the keeper has gone since it was opened (SIGPIPE is
     * blocked). */
    return wrote > 0 || errno == EAGAIN ? 0 : errno == EPIPE ? ENXIO : errno;
}

/* Rings the bell at `path`, and says who rings: `name`, of its flight file, and a line break (255 bytes at
 * most). 0: a keeper has it; ENXIO, ENOENT: there is none; EPERM: what is there is no fifo of this user's;
 * or another errno. Keeps no descriptor, allocates nothing, and waits for no reader. */
static int ring_doorbell(const char *path, const char *name)
{
    const int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY);
    if (fd < 0) {
        const int error = errno;
        struct stat facts; /* another user's fifo without a reader: a keeper could not use it either */
        return error == ENXIO && lstat(path, &facts) == 0 && facts.st_uid != geteuid() ? EPERM : error;
    }
    const int error = write_line(fd, name);
    close(fd);
    return error;
}

/* ---- ring and start ------------------------------------------------------------------------- */

/* 0 if this thread may start the keeper or the drain: the root folder is that of the engine's start (below
 * another one files may be another user's), and the thread has no more rights than the program. Else an
 * errno. */
static int may_start(const lc_courier *c)
{
    const lc_root_folder root = lc_process_root();
    if (root.device != c->root.device || root.inode != c->root.inode) {
        return EPERM;
    }
    return getuid() == geteuid() && getgid() == getegid() && lc_own_rights_follow() ? 0 : EAGAIN;
}

static int start(lc_courier *c, const lc_keeper_words *words, uint64_t now_ns)
{
    if (c->started_ns != 0 && now_ns < c->started_ns + c->start_pause_ns &&
        !lc_keeper_words_ended_well(words)) {
        return c->start_error != 0                       ? c->start_error
               : now_ns < c->started_ns + START_PAUSE_NS ? EINPROGRESS
                                                         : EAGAIN;
    }
    const int refusal = may_start(c), error = refusal ? refusal : lc_keeper_words_start(words);
    if (refusal || error == EINPROGRESS) {
        return error; /* EINPROGRESS: another process is starting one */
    }
    if (c->started_ns != 0) {
        const bool lived = now_ns > c->started_ns + GOOD_LIFE_NS;
        c->start_pause_ns = lived ? START_PAUSE_NS : lc_least(2u * c->start_pause_ns, START_PAUSE_MOST_NS);
    }
    c->started_ns = now_ns;
    c->start_error = error;
    lc_flight_count(c->flight, error ? LC_COUNTER_keepers_refused : LC_COUNTER_keepers_started, 1);
    return error ? error : EINPROGRESS;
}

static int ring(lc_courier *c, uint64_t now_ns)
{
    const lc_keeper_words *words = atomic_load_explicit(&c->words, memory_order_acquire);
    if (words == NULL) {
        return ENOENT;
    }
    const int error = ring_doorbell(words->paths.bell, words->paths.name);
    if (error == ENXIO || error == ENOENT) {
        return start(c, words, now_ns);
    }
    if (error != 0) {
        lc_flight_count(c->flight, LC_COUNTER_keepers_refused, 1);
    }
    return error;
}

static bool is_for_good(const lc_courier *c, int outcome)
{
    /* Try again: descriptors may be free later, and without one nothing can be stored. */
    return outcome != EINPROGRESS && outcome != EMFILE && outcome != ENFILE &&
           (outcome != EAGAIN || c->start_error == EAGAIN);
}

static bool has_ended(const lc_flight *flight, uint64_t index)
{
    const lc_slot *slot = lc_flight_slot(flight, index);
    return LC_ACQUIRE(slot->state) == LC_SLOT_ENDED &&
           LC_LOAD(flight->keeper->taken[index]) != LC_LOAD(slot->serial);
}

static uint64_t slots_used(const lc_flight *flight)
{
    return lc_least(LC_ACQUIRE(flight->header->sections[LC_SECTION_SLOTS].used), LC_SLOT_COUNT);
}

static bool has_any_ended(const lc_flight *flight)
{
    bool found = false;
    for (uint64_t i = 0; i < slots_used(flight) && !found; i++) {
        found = has_ended(flight, i);
    }
    return found;
}

/* Where there will be no keeper, the program judges its stalls itself. */
static void hand_back(lc_courier *c, int outcome, uint64_t now_ns)
{
    const uint64_t beat_ns = LC_LOAD(c->flight->keeper->beat_ns);
    const bool is_heard = outcome == 0;
    if (is_heard && !has_any_ended(c->flight)) {
        c->silent_ns = 0;
        return;
    }
    if (c->silent_ns == 0 || (beat_ns > c->silent_ns && beat_ns <= now_ns)) {
        c->silent_ns = now_ns;
    }
    const bool is_told = atomic_load(&c->refusal) != 0 || c->take_over == NULL;
    const bool is_over = now_ns - c->silent_ns >= (is_heard ? DEAF_NS : SILENCE_NS);
    if ((is_over || (!is_heard && is_for_good(c, outcome))) && !is_told && may_start(c) == 0) {
        atomic_store(&c->refusal, is_heard ? EBUSY : outcome);
        if (!c->take_over()) {
            atomic_store(&c->refusal, 0);
        }
    }
}

static bool deal_with_wishes(lc_courier *c, uint64_t now_ns)
{
    const uint32_t asked = atomic_load(&c->asked);
    const bool is_new = asked != atomic_load(&c->done);
    if (!is_new && now_ns < c->next_ring_ns) {
        return false;
    }
    const bool is_starting = atomic_load(&c->outcome) == EINPROGRESS;
    c->ring_pause_ns =
        is_new || is_starting ? RING_PAUSE_NS : lc_least(2u * c->ring_pause_ns, RING_PAUSE_MOST_NS);
    if (is_new || lc_courier_is_owed(c)) {
        if (LC_LOAD(c->flight->header->takes) == LC_TAKES_KEEPER) {
            const int outcome = ring(c, now_ns);
            atomic_store(&c->outcome, outcome);
            hand_back(c, outcome, now_ns);
        }
        c->next_ring_ns =
            now_ns + (atomic_load(&c->outcome) == EINPROGRESS ? STARTING_PAUSE_NS : c->ring_pause_ns);
    } else {
        c->next_ring_ns = LC_NO_DEADLINE;
    }
    atomic_store(&c->done, asked);
    lc_bell_ring_shared(&c->flight->keeper->bell); /* for lc_courier_wait, lc_courier_see_off */
    return is_new;
}

/* ---- texts ------------------------------------------------------------------------------------- */

/* The page may change at any time, so its text is read once, into memory of our own. */
static bool put_text(lc_courier *c)
{
    char text[LC_KEEPER_TEXT_BYTES];
    lc_keeper *page = c->flight->keeper;
    lc_word *written = &c->flight->header->text_written;
    const uint64_t number = LC_LOAD(*written) + 1u;
    if (LC_ACQUIRE(page->text_number) != number) {
        return false;
    }
    const uint64_t bytes = LC_LOAD(page->text_bytes);
    const bool fits = bytes <= sizeof text;
    memcpy(text, page->text, fits ? bytes : 0u);
    const bool shown = fits && lc_console_write(&c->console, text, bytes);
    lc_flight_count(c->flight, shown ? LC_COUNTER_texts_written : LC_COUNTER_texts_dropped, 1);
    LC_RELEASE(*written, number);
    lc_bell_ring_shared(&page->bell);
    return true;
}

static bool put_first_word(lc_courier *c)
{
    const size_t bytes = atomic_load_explicit(&c->word_bytes, memory_order_acquire);
    if (bytes != 0) {
        (void)lc_console_write(&c->console, c->word, bytes);
        atomic_store_explicit(&c->word_bytes, 0, memory_order_release);
    }
    return bytes != 0;
}

/* ---- the thread ---------------------------------------------------------------------------------- */

bool lc_courier_is_owed(const lc_courier *c)
{
    const lc_flight *flight = c->flight;
    bool is_owed = false;
    const uint64_t used = LC_LOAD(flight->header->takes) == LC_TAKES_KEEPER ? slots_used(flight) : 0u;
    for (uint64_t i = 0; i < used && !is_owed; i++) {
        is_owed = LC_ACQUIRE(lc_flight_slot(flight, i)->state) == LC_SLOT_STALL || has_ended(flight, i);
    }
    return is_owed;
}

bool lc_courier_look(lc_courier *c, uint64_t now_ns)
{
    lc_spawned_children_bury();
    const bool said = put_first_word(c);
    const bool rang = deal_with_wishes(c, now_ns);
    return put_text(c) || rang || said;
}

/* Runs until the thread is asked to stop. True: it stops by itself, as nothing was owed for long enough. */
static bool serve(lc_courier *c)
{
    lc_bell *const bell = &c->flight->keeper->bell;
    uint64_t last_ns = lc_now_ns();
    while (lc_life_is(&c->life, LC_LIFE_RUNS)) {
        const uint32_t seen = atomic_load_explicit(bell, memory_order_acquire);
        lc_own_rights_follow();
        const uint64_t now_ns = lc_now_ns();
        const bool is_owed = lc_courier_is_owed(c);
        const bool worked = lc_courier_look(c, now_ns);
        last_ns = worked || is_owed ? now_ns : last_ns;
        if (is_owed && c->next_ring_ns == LC_NO_DEADLINE) { /* the program could not take over */
            c->next_ring_ns = now_ns + c->ring_pause_ns;
        }
        const uint64_t idle_ns = last_ns + IDLE_NS;
        if (now_ns >= idle_ns && lc_life_change(&c->life, LC_LIFE_RUNS, LC_LIFE_STOPS)) {
            return true;
        }
        if (!worked && lc_bell_wait_shared(bell, seen, lc_least(c->next_ring_ns, idle_ns))) {
            lc_bell_wait(&c->never, 0, lc_now_ns() + NAP_NS);
        }
    }
    return false;
}

/* A request that comes while the thread is about to stop either keeps it running, or came before and is
 * seen here. Once its life is over the thread touches nothing. */
static void *run(void *argument)
{
    lc_courier *c = argument;
    prctl(PR_SET_NAME, "loopcanary", 0, 0, 0);
    do {
        while (serve(c) && atomic_load(&c->asked) != atomic_load(&c->done)) {
            (void)lc_life_change(&c->life, LC_LIFE_STOPS, LC_LIFE_RUNS);
        }
    } while (!lc_life_change(&c->life, LC_LIFE_STOPS, LC_LIFE_OVER));
    return NULL;
}

lc_courier_wish lc_courier_ask(lc_courier *c)
{
    const lc_courier_wish wish = {c->flight->keeper, c->flight->header, atomic_fetch_add(&c->asked, 1) + 1u};
    if (lc_life_change(&c->life, LC_LIFE_STOPS, LC_LIFE_RUNS) ||
        !lc_life_change(&c->life, LC_LIFE_OVER, LC_LIFE_RUNS)) {
        lc_bell_ring_shared(&wish.page->bell);
        return wish;
    }
    const int error = lc_own_thread_start(run, c, false);
    if (error != 0) {
        lc_flight_count(c->flight, LC_COUNTER_keepers_refused, 1);
        atomic_store(&c->outcome, error);
        atomic_store(&c->done, wish.number);
        atomic_store(&c->life, LC_LIFE_OVER);
    }
    return wish;
}

void lc_courier_say_first(lc_courier *c, const lc_slot *slot, uint64_t busy_ns)
{
    char **const folders = atomic_load_explicit(&c->folders, memory_order_acquire);
    if (folders == NULL || atomic_load_explicit(&c->word_bytes, memory_order_acquire) != 0) {
        return; /* the text before is not written yet: nothing reads stderr */
    }
    const size_t bytes = lc_first_word(slot, busy_ns, folders, c->word);
    atomic_store_explicit(&c->word_bytes, bytes, memory_order_release);
    (void)lc_courier_ask(c);
    if (lc_life_is(&c->life, LC_LIFE_OVER)) { /* the system gives no thread */
        (void)put_first_word(c);
    }
}

void lc_courier_ask_to_stop(lc_courier *c)
{
    if (lc_life_change(&c->life, LC_LIFE_RUNS, LC_LIFE_STOPS)) {
        lc_bell_ring_shared(&c->flight->keeper->bell);
    }
}

/* ---- who waits for it -------------------------------------------------------------------------------- */

static bool is_done(const lc_courier *c, uint32_t number)
{
    return (int32_t)(atomic_load(&c->done) - number) >= 0;
}

int lc_courier_wait(lc_courier *c, const lc_courier_wish *wish, uint64_t deadline_ns)
{
    lc_bell *const bell = &wish->page->bell;
    for (;;) {
        const uint32_t seen = atomic_load_explicit(bell, memory_order_acquire);
        if (is_done(c, wish->number)) {
            return atomic_load(&c->outcome);
        }
        if (lc_life_is(&c->life, LC_LIFE_OVER) || !lc_bell_wait_shared(bell, seen, deadline_ns)) {
            return ETIMEDOUT;
        }
    }
}

static bool is_closed(const lc_courier_wish *wish)
{
    return LC_ACQUIRE(wish->page->closed) == 1 &&
           LC_ACQUIRE(wish->page->text_number) == LC_ACQUIRE(wish->header->text_written);
}

bool lc_courier_see_off(lc_courier *c, const lc_courier_wish *wish, uint64_t deadline_ns)
{
    lc_bell *const bell = &wish->page->bell;
    const int outcome = lc_courier_wait(c, wish, deadline_ns);
    bool in_time = outcome == 0 || outcome == EINPROGRESS;
    while (!is_closed(wish) && in_time) {
        const uint32_t seen = atomic_load_explicit(bell, memory_order_acquire);
        in_time = is_closed(wish) || lc_bell_wait_shared(bell, seen, deadline_ns);
    }
    return is_closed(wish);
}
