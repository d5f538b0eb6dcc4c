#include "answers.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "clock.h"

#define TCP_INFO_OPTION 11                 /* TCP_INFO: netinet/tcp.h and linux/tcp.h cannot be had together */
#define LAST_DATA_RECV 52u                 /* offset of tcpi_last_data_recv in struct tcp_info, which only grows at its end */
#define COOKIE_OPTION 57                   /* SO_COOKIE, Linux 4.12 */
#define AGE_MAX_NS UINT64_C(3600000000000) /* longer: a connection that nobody answers */
#define PARTS 16u
#define PART_BITS 4u

lc_answer_row lc_answer_rows[LC_ANSWERS_ROWS];
lc_answer_request lc_answer_requests[LC_ANSWERS_CONNECTIONS];
lc_answer_session lc_answer_sessions[LC_ANSWERS_SESSIONS];
_Thread_local int lc_answers_record_fd __attribute__((tls_model("initial-exec"))) = -1;
static _Atomic uint32_t received;
static _Atomic bool is_on;
static _Atomic(lc_answers_looker) looker;

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

void lc_answers_set_looker(lc_answers_looker fresh) { SET(looker, fresh); }

void lc_answers_end(void) { SET(is_on, false); }

void lc_answers_begin(void)
{
    SET(is_on, false);
    for (size_t i = 0; i < LC_ANSWERS_CONNECTIONS; i++) {
        if (GET(lc_answer_requests[i].taken_ns) != 0) { /* a store would make the page the process's own */
            SET(lc_answer_requests[i].taken_ns, 0);
        }
        if (GET(lc_answer_requests[i].came_ns) != 0) {
            SET(lc_answer_requests[i].came_ns, 0);
        }
    }
    for (size_t i = 0; i < LC_ANSWERS_SESSIONS; i++) {
        if (GET(lc_answer_sessions[i].session) != 0) {
            SET(lc_answer_sessions[i].session, 0);
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

/* ---- what the kernel knows of a socket --------------------------------------------------- */

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

static bool is_unix(int fd)
{
    int domain = 0, type = 0;
    return read_option(fd, SOL_SOCKET, SO_DOMAIN, &domain, sizeof domain) && domain == AF_UNIX &&
           read_option(fd, SOL_SOCKET, SO_TYPE, &type, sizeof type) && type == SOCK_STREAM;
}

/* ---- Unix sockets: what the loop's looks tell --------------------------------------------- */

static uint64_t own_thread(void) { return (uint64_t)(uintptr_t)&lc_own_turn_before; }

static bool look(uint64_t now, lc_look *out)
{
    const lc_answers_looker told = GET(looker);
    return told != NULL && told(now, out);
}

static uint64_t middle(uint64_t from, uint64_t to) { return from < to ? from + (to - from) / 2u : to; }

/* Whether what was noted of the socket is of this thread's lane, of this socket, and the loop has not rested since. */
static bool goes_on(lc_answer_request *socket, uint64_t cookie, const lc_look *now)
{
    return GET(socket->came_ns) != 0 && GET(socket->came_thread) == own_thread() &&
           GET(socket->came_cookie) == cookie && lc_look_goes_on(GET(socket->came_rested), now);
}

static void note_look(lc_answer_request *socket, uint64_t cookie, const lc_look *now, uint64_t came_ns)
{
    SET(socket->came_thread, own_thread());
    SET(socket->came_cookie, cookie);
    SET(socket->came_rested, now->rested);
    SET(socket->came_ns, came_ns);
}

static bool is_readable(int fd)
{
    struct pollfd asked = {.fd = fd, .events = POLLIN};
    const int error = errno;
    const bool is = poll(&asked, 1, 0) == 1 && (asked.revents & POLLIN) != 0;
    errno = error;
    return is;
}

/* Connections wait in the order in which they came, and loops accept one or all of them in a turn. One that waited
 * already when the one before it was accepted came before that, and after the look that the first one of them had waited
 * for. */
void lc_answers_accepted(int listening, int fd)
{
    lc_look now;
    if ((unsigned)fd >= LC_ANSWERS_CONNECTIONS || (unsigned)listening >= LC_ANSWERS_CONNECTIONS || !GET(is_on) ||
        !is_unix(fd)) {
        return;
    }
    const uint64_t now_ns = lc_now_ns();
    lc_answer_request *listener = &lc_answer_requests[listening], *connection = &lc_answer_requests[fd];
    const uint64_t cookie = cookie_of(fd), listener_cookie = cookie_of(listening);
    if (cookie == 0 || listener_cookie == 0 || !look(now_ns, &now)) {
        SET(connection->came_ns, 0);
        return;
    }
    const bool waited = goes_on(listener, listener_cookie, &now);
    const uint64_t after_ns = waited ? GET(listener->came_ns) : now.after_ns;
    note_look(connection, cookie, &now, middle(after_ns, waited ? GET(listener->until_ns) : now.until_ns));
    SET(listener->until_ns, now_ns);
    note_look(listener, listener_cookie, &now, is_readable(listening) ? after_ns : 0);
}

/* When the bytes came that the calling thread has just received. A new connection's first bytes came with it. */
static uint64_t unix_arrival_ns(lc_answer_request *request, int fd, uint64_t cookie, uint64_t now_ns)
{
    lc_look now;
    if (!is_unix(fd)) {
        return 0;
    }
    if (!look(now_ns, &now)) {
        return now_ns;
    }
    return goes_on(request, cookie, &now) ? GET(request->came_ns) : middle(now.after_ns, now.until_ns);
}

/* ---- requests ---------------------------------------------------------------------------- */

void lc_answers_leave(int fd)
{
    if ((unsigned)fd < LC_ANSWERS_CONNECTIONS) {
        SET(lc_answer_requests[fd].elsewhere, cookie_of(fd));
    }
}

/* 0: it is none that is timed. */
static uint64_t arrival_ns(lc_answer_request *request, int fd, uint64_t cookie, uint64_t now)
{
    const uint64_t arrived = tcp_arrival_ns(fd, now);
    return arrived != 0 ? arrived : unix_arrival_ns(request, fd, cookie, now);
}

static void note_arrival(lc_answer_request *request, int fd, uint64_t cookie)
{
    const uint64_t now = lc_now_ns(), arrived = arrival_ns(request, fd, cookie, now);
    SET(request->arrived_ns, arrived);
    SET(request->taken_ns, arrived != 0 ? now : 0);
}

static void time_request(lc_answer_request *request, int fd, uint32_t word, uint64_t session)
{
    const uint64_t cookie = cookie_of(fd);
    if (cookie == 0 || cookie == GET(request->elsewhere)) {
        return;
    }
    SET(request->cookie, cookie);
    SET(request->word, word);
    SET(request->session, session);
    note_arrival(request, fd, cookie);
}

static void begun(int fd, uint32_t word, uint64_t session)
{
    if ((unsigned)fd >= LC_ANSWERS_CONNECTIONS || !GET(is_on)) {
        return;
    }
    lc_answer_request *request = &lc_answer_requests[fd];
    if (atomic_fetch_add_explicit(&received, 1u, memory_order_relaxed) % LC_ANSWERS_ONE_OF == 0) {
        time_request(request, fd, word, session);
    }
    if (GET(request->came_ns) != 0) {
        SET(request->came_ns, 0); /* what comes next does not come with the connection */
    }
}

void lc_answers_begun(int fd, uint32_t word) { begun(fd, word, 0); }

void lc_answers_begun_by(const void *session, int fd, uint32_t word)
{
    const int socket = fd >= 0 ? fd : lc_answers_record_fd;
    lc_answer_session *entry = lc_answers_session(session);
    lc_answers_record_fd = -1; /* what is deciphered next was received next */
    begun(socket, word, (uint64_t)(uintptr_t)session);
    if (lc_answers_awaited(socket) && GET(lc_answer_requests[socket].session) == (uint64_t)(uintptr_t)session) {
        SET(entry->fd, socket);
        SET(entry->session, (uint64_t)(uintptr_t)session);
    }
}

static void more(int fd, uint32_t word, uint64_t session)
{
    lc_answer_request *request = &lc_answer_requests[fd];
    const uint64_t cookie = cookie_of(fd);
    const bool is_the_same = cookie == GET(request->cookie);
    if (lc_answers_is_record(word)) {
        lc_answers_record_fd = fd;
    }
    if (!is_the_same) {
        SET(request->taken_ns, 0); /* nobody answered, and the descriptor is another's by now */
    }
    if (lc_answers_is_method(word)) {
        if (!is_the_same) {
            begun(fd, word, session);
        }
    } else if (is_the_same) {
        note_arrival(request, fd, cookie);
    }
}

void lc_answers_more(int fd, uint32_t word) { more(fd, word, 0); }

/* Where loops carry the bytes, receiving has told of them. */
void lc_answers_more_by(const void *session, int fd, uint32_t word)
{
    if (fd >= 0 && lc_answers_awaited(fd) && GET(lc_answer_requests[fd].session) == (uint64_t)(uintptr_t)session) {
        more(fd, word, (uint64_t)(uintptr_t)session);
    }
}

static bool answered(int fd, uint64_t session, uint64_t sent_ns, lc_answer *answer)
{
    if ((unsigned)fd >= LC_ANSWERS_CONNECTIONS || GET(lc_answer_requests[fd].session) != session) {
        return false;
    }
    lc_answer_request *request = &lc_answer_requests[fd];
    *answer = (lc_answer){
        .arrived_ns = GET(request->arrived_ns),
        .taken_ns = atomic_exchange_explicit(&request->taken_ns, 0, memory_order_relaxed),
        .sent_ns = sent_ns,
        .word = GET(request->word),
    };
    return answer->taken_ns != 0 && answer->sent_ns >= answer->taken_ns && answer->taken_ns >= answer->arrived_ns &&
           answer->sent_ns - answer->arrived_ns < AGE_MAX_NS && cookie_of(fd) == GET(request->cookie);
}

/* What a session sends by itself (its handshake, its tickets) goes through the same socket, and is no answer. */
bool lc_answers_sent(int fd, uint64_t sent_ns, lc_answer *answer) { return answered(fd, 0, sent_ns, answer); }

bool lc_answers_enciphering(const void *session, uint64_t sent_ns, lc_answer *answer)
{
    lc_answer_session *entry = lc_answers_session(session);
    uint64_t own = (uint64_t)(uintptr_t)session;
    return atomic_compare_exchange_strong_explicit(&entry->session, &own, 0, memory_order_relaxed,
                                                   memory_order_relaxed) &&
           answered(GET(entry->fd), (uint64_t)(uintptr_t)session, sent_ns, answer);
}

/* ---- figures ----------------------------------------------------------------------------- */

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
