#include "core/answers/answers.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "core/clock/clock.h"

#define TCP_INFO_OPTION 11 /* TCP_INFO: netinet/tcp.h and linux/tcp.h cannot be had together */
#define LAST_DATA_RECV 52u /* offset of tcpi_last_data_recv in struct tcp_info, which only grows at its end */
#define COOKIE_OPTION 57   /* SO_COOKIE, Linux 4.12 */
#define AGE_MAX_NS UINT64_C(3600000000000) /* longer: it was never answered */
#define PARTS 16u
#define PART_BITS 4u

lc_answer_row lc_answer_rows[LC_ANSWERS_ROWS];
lc_answer_request lc_answer_requests[LC_ANSWERS_CONNECTIONS];
_Thread_local int lc_answers_fresh;
static _Atomic uint32_t received;
static _Atomic bool is_on;

#define GET(word) atomic_load_explicit(&(word), memory_order_relaxed)
#define SET(word, value) atomic_store_explicit(&(word), (value), memory_order_relaxed)
#define ADD(word, value) (void)atomic_fetch_add_explicit(&(word), (value), memory_order_relaxed)

static void clear_row(lc_answer_row *row)
{
    SET(row->ident, 0);
    SET(row->events, 0);
    SET(row->lag_ns, 0);
    SET(row->waited_ns, 0);
    SET(row->worst_ns, 0);
    for (size_t i = 0; i < LC_ANSWERS_BUCKETS; i++) {
        SET(row->counts[i], 0);
    }
    row->worst[0] = row->thread[0] = '\0';
    atomic_flag_clear(&row->names_worst);
}

void lc_answers_end(void) { SET(is_on, false); }

void lc_answers_begin(void)
{
    SET(is_on, false);
    for (size_t i = 0; i < LC_ANSWERS_CONNECTIONS; i++) {
        if (GET(lc_answer_requests[i].taken_ns) != 0) { /* a store would make the page the process's own */
            SET(lc_answer_requests[i].taken_ns, 0);
        }
    }
    for (size_t i = 0; i < LC_ANSWERS_ROWS; i++) {
        if (GET(lc_answer_rows[i].events) != 0 || GET(lc_answer_rows[i].ident) != 0) {
            clear_row(&lc_answer_rows[i]);
        }
    }
    SET(received, 0);
    SET(is_on, true);
}

/* False: not a socket any more, or an older kernel. */
static bool read_option(int fd, int level, int option, void *into, size_t bytes)
{
    socklen_t length = (socklen_t)bytes;
    const int error = errno;
    const bool could = getsockopt(fd, level, option, into, &length) == 0 && length == bytes;
    errno = error;
    return could;
}

/* A number that no other socket of this host has or will have; 0: unknown. */
static uint64_t cookie_of(int fd)
{
    uint64_t cookie = 0;
    return read_option(fd, SOL_SOCKET, COOKIE_OPTION, &cookie, sizeof cookie) ? cookie : 0;
}

/* When the socket's last bytes came, to the length of the kernel's tick; 0: no TCP. */
static uint64_t tcp_arrival_ns(int fd, uint64_t now)
{
    uint8_t info[LAST_DATA_RECV + sizeof(uint32_t)];
    uint32_t ago_ms;
    if (!read_option(fd, IPPROTO_TCP, TCP_INFO_OPTION, info, sizeof info)) {
        return 0;
    }
    memcpy(&ago_ms, &info[LAST_DATA_RECV], sizeof ago_ms);
    const uint64_t ago_ns = UINT64_C(1000000) * ago_ms;
    return ago_ns < now ? now - ago_ns : 0;
}

static void note_arrival(lc_answer_request *request, int fd)
{
    const uint64_t now = lc_now_ns(), arrived = tcp_arrival_ns(fd, now);
    SET(request->arrived_ns, arrived);
    SET(request->taken_ns, arrived != 0 ? now : 0);
}

#define NAMES 64u

static struct {
    _Atomic int owner; /* 1 more than the connection; 0: free; -1: it is written */
    char text[LC_ANSWERS_NAME];
} names[NAMES];

static void forget_name(int fd)
{
    int owner = fd + 1;
    (void)atomic_compare_exchange_strong(&names[(unsigned)fd % NAMES].owner, &owner, 0);
}

void lc_answers_name(int fd, const char *name)
{
    if (lc_answers_awaited(fd)) {
        int owner = atomic_exchange(&names[(unsigned)fd % NAMES].owner, -1);
        if (owner != -1) {
            strncpy(names[(unsigned)fd % NAMES].text, name, LC_ANSWERS_NAME - 1u);
            atomic_store(&names[(unsigned)fd % NAMES].owner, fd + 1);
        }
    }
}

bool lc_answers_named(const lc_answer *answer, char *name, size_t room)
{
    int owner = answer->fd + 1;
    const unsigned i = (unsigned)answer->fd % NAMES;
    if (!atomic_compare_exchange_strong(&names[i].owner, &owner, -1)) {
        return false;
    }
    strncpy(name, names[i].text, room - 1u);
    name[room - 1u] = '\0';
    atomic_store(&names[i].owner, 0);
    return true;
}

void lc_answers_handled(int fd)
{
    if (lc_answers_awaited(fd) && cookie_of(fd) == GET(lc_answer_requests[fd].cookie)) {
        SET(lc_answer_requests[fd].taken_ns, lc_now_ns());
    }
}

static void time_request(lc_answer_request *request, int fd, uint32_t word)
{
    const uint64_t cookie = cookie_of(fd);
    if (cookie == 0) {
        return;
    }
    SET(request->cookie, cookie);
    SET(request->word, word);
    note_arrival(request, fd);
    if (GET(request->taken_ns) != 0) {
        forget_name(fd);
        lc_answers_fresh = fd + 1;
    }
}

void lc_answers_begun(int fd, uint32_t word)
{
    if ((unsigned)fd >= LC_ANSWERS_CONNECTIONS || !GET(is_on)) {
        return;
    }
    lc_answer_request *request = &lc_answer_requests[fd];
    if (atomic_fetch_add_explicit(&received, 1u, memory_order_relaxed) % LC_ANSWERS_ONE_OF == 0) {
        time_request(request, fd, word);
    }
}

void lc_answers_more(int fd, uint32_t word)
{
    lc_answer_request *request = &lc_answer_requests[fd];
    const uint64_t cookie = cookie_of(fd);
    const bool is_the_same = cookie == GET(request->cookie);
    if (!is_the_same) {
        SET(request->taken_ns, 0); /* it was never answered, and the descriptor is another's by now */
    }
    if (lc_answers_is_method(word)) {
        if (!is_the_same) {
            lc_answers_begun(fd, word);
        }
    } else if (is_the_same) {
        note_arrival(request, fd);
    }
}

bool lc_answers_sent(int fd, uint64_t sent_ns, lc_answer *answer)
{
    if ((unsigned)fd >= LC_ANSWERS_CONNECTIONS) {
        return false;
    }
    lc_answer_request *request = &lc_answer_requests[fd];
    *answer = (lc_answer){
        .arrived_ns = GET(request->arrived_ns),
        .taken_ns = atomic_exchange_explicit(&request->taken_ns, 0, memory_order_relaxed),
        .sent_ns = sent_ns,
        .word = GET(request->word),
        .fd = fd,
    };
    return answer->taken_ns != 0 && answer->sent_ns >= answer->taken_ns &&
           answer->taken_ns >= answer->arrived_ns && answer->sent_ns - answer->arrived_ns < AGE_MAX_NS &&
           cookie_of(fd) == GET(request->cookie);
}

lc_answer_row *lc_answers_row(uint64_t ident, const char *thread)
{
    for (size_t i = 1; i < LC_ANSWERS_ROWS; i++) {
        lc_answer_row *row = &lc_answer_rows[i];
        uint64_t owner = GET(row->ident);
        if (owner == ident) {
            return row;
        }
        if (owner == 0 && atomic_compare_exchange_strong(&row->ident, &owner, ident)) {
            strncpy(row->thread, thread, sizeof row->thread - 1u);
            return row;
        }
    }
    return &lc_answer_rows[0];
}

uint32_t lc_answers_bucket(uint64_t ns)
{
    if (ns < PARTS) {
        return (uint32_t)ns;
    }
    const uint32_t octave = 63u - (uint32_t)__builtin_clzll(ns) - PART_BITS;
    const uint32_t bucket = (octave << PART_BITS) + (uint32_t)(ns >> octave);
    return bucket < LC_ANSWERS_BUCKETS ? bucket : LC_ANSWERS_BUCKETS - 1u;
}

bool lc_answers_count(lc_answer_row *row, const lc_answer *answer)
{
    const uint64_t lag = answer->sent_ns - answer->arrived_ns;
    ADD(row->counts[lc_answers_bucket(lag)], 1u);
    ADD(row->events, 1u);
    ADD(row->lag_ns, lag);
    ADD(row->waited_ns, answer->taken_ns - answer->arrived_ns);
    uint64_t worst = GET(row->worst_ns);
    while (lag > worst) {
        if (atomic_compare_exchange_weak(&row->worst_ns, &worst, lag)) {
            return true;
        }
    }
    return false;
}

void lc_answers_name_worst(lc_answer_row *row, const char *name)
{
    if (!atomic_flag_test_and_set_explicit(&row->names_worst, memory_order_acquire)) {
        memset(row->worst, 0, sizeof row->worst);
        strncpy(row->worst, name, sizeof row->worst - 1u);
        atomic_flag_clear_explicit(&row->names_worst, memory_order_release);
    }
}

const char *lc_answers_method(const lc_answer *answer)
{
    static const char *const methods[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        char first[sizeof answer->word] = {' ', ' ', ' ', ' '};
        memcpy(first, methods[i], strnlen(methods[i], sizeof first));
        if (memcmp(first, &answer->word, sizeof first) == 0) {
            return methods[i];
        }
    }
    return "";
}
