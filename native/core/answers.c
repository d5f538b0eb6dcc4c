#include "answers.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "clock.h"

#define TCP_INFO_OPTION 11                    /* TCP_INFO: netinet/tcp.h and linux/tcp.h cannot be had together */
#define LAST_DATA_RECV 52u                    /* offset of tcpi_last_data_recv in struct tcp_info, which only grows at its end */
#define AGE_MAX_NS UINT64_C(3600000000000)    /* longer: the next write was no answer */
#define PARTS 16u
#define PART_BITS 4u

typedef struct {
    _Atomic uint64_t arrived_ns;
    _Atomic uint64_t taken_ns; /* 0: nothing is timed */
} timed_message;

_Atomic uint8_t lc_answer_roles[LC_ANSWERS_CONNECTIONS];
lc_answer_row lc_answer_rows[LC_ANSWERS_ROWS];
static timed_message messages[LC_ANSWERS_CONNECTIONS];
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
        SET(messages[i].taken_ns, 0);
    }
    for (size_t i = 0; i < LC_ANSWERS_ROWS; i++) {
        if (i == 0 || GET(lc_answer_rows[i].ident) != 0) {
            clear_row(&lc_answer_rows[i]);
        }
    }
    SET(received, 0);
    SET(is_on, true);
}

void lc_answers_note_connection(int fd, bool accepted)
{
    if ((unsigned)fd < LC_ANSWERS_CONNECTIONS) {
        SET(messages[fd].taken_ns, 0);
        SET(lc_answer_roles[fd], accepted);
    }
}

bool lc_last_arrival_ns(int fd, uint64_t *ago_ns)
{
    uint8_t info[LAST_DATA_RECV + sizeof(uint32_t)];
    socklen_t length = sizeof info;
    const int error = errno;
    const int failed = getsockopt(fd, IPPROTO_TCP, TCP_INFO_OPTION, info, &length);
    errno = error;
    if (failed != 0 || length < sizeof info) {
        return false;
    }
    uint32_t ago_ms;
    memcpy(&ago_ms, &info[LAST_DATA_RECV], sizeof ago_ms);
    *ago_ns = UINT64_C(1000000) * ago_ms;
    return true;
}

static void time_message(int fd)
{
    uint64_t ago_ns;
    if (!lc_last_arrival_ns(fd, &ago_ns)) {
        lc_answers_note_connection(fd, false); /* another family, or not a connection any more */
        return;
    }
    const uint64_t now = lc_now_ns();
    SET(messages[fd].arrived_ns, now > ago_ns ? now - ago_ns : 0);
    SET(messages[fd].taken_ns, now);
}

void lc_answers_received(int fd, const void *data, ssize_t bytes)
{
    if (bytes <= 0 || !lc_answers_knows(fd) || !GET(is_on)) {
        return;
    }
    if (GET(messages[fd].taken_ns) != 0) {
        time_message(fd);
    } else if (lc_answers_may_be_request(data) &&
               atomic_fetch_add_explicit(&received, 1u, memory_order_relaxed) % LC_ANSWERS_ONE_OF == 0) {
        time_message(fd);
    }
}

bool lc_answers_sent(int fd, lc_answer *answer)
{
    if (!lc_answers_knows(fd) || GET(messages[fd].taken_ns) == 0) {
        return false;
    }
    *answer = (lc_answer){
        .arrived_ns = GET(messages[fd].arrived_ns),
        .taken_ns = atomic_exchange_explicit(&messages[fd].taken_ns, 0, memory_order_relaxed),
        .sent_ns = lc_now_ns(),
    };
    return answer->taken_ns != 0 && answer->sent_ns >= answer->taken_ns && answer->taken_ns >= answer->arrived_ns &&
           answer->sent_ns - answer->arrived_ns < AGE_MAX_NS;
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
    return NULL;
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
