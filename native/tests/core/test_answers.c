/* What is timed of a connection's requests, on real sockets. */
#include "answers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "check.h"
#include "clock.h"

static const char get[] = "GET / HTTP/1.1\r\n\r\n";

static void connect_tcp(int *client, int *server)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    const int listening = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(listening, (struct sockaddr *)&address, sizeof address) == 0 && listen(listening, 1) == 0);
    CHECK(getsockname(listening, (struct sockaddr *)&address, &length) == 0);
    *client = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(connect(*client, (struct sockaddr *)&address, sizeof address) == 0);
    *server = accept(listening, NULL, NULL);
    close(listening);
}

static bool answer_of(int fd, lc_answer *answer) { return lc_answers_sent(fd, lc_now_ns(), answer); }

static void one_of_some_is_timed_and_its_first_byte_counts(int server)
{
    lc_answer answer;
    unsigned timed = 0;
    lc_answers_begin();
    for (unsigned i = 0; i < 4 * LC_ANSWERS_ONE_OF; i++) {
        lc_answers_received(server, get, sizeof get);
        timed += answer_of(server, &answer);
        CHECK(!lc_answers_awaited(server) && !answer_of(server, &answer));
    }
    CHECK(timed == 4);
}

static void begin_to_time(int server, const char *data)
{
    lc_answers_begin(); /* the next one is one of those that are timed */
    lc_answers_received(server, data, (ssize_t)strlen(data));
}

static void only_requests_of_http_are_timed(int server)
{
    lc_answer answer;
    static const char *const others[] = {"\x16\x03\x01\x02\x01", "\x17\x03\x03\x01\x20", "\x81\x85\x01\x02\x03",
                                         "PRI * HTTP/2.0", "HTTP/1.1 200 OK", "hello, world", "GETTING", "GET"};
    static const char *const methods[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        begin_to_time(server, others[i]);
        CHECK(!lc_answers_awaited(server));
    }
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        char request[32];
        snprintf(request, sizeof request, "%s /", methods[i]);
        begin_to_time(server, request);
        CHECK(answer_of(server, &answer) && strcmp(lc_answers_method(&answer), methods[i]) == 0);
        CHECK(answer.arrived_ns <= answer.taken_ns && answer.taken_ns <= answer.sent_ns);
    }
}

static void more_bytes_before_the_answer_move_the_arrival_on_and_another_request_does_not(int server)
{
    lc_answer answer;
    begin_to_time(server, get);
    uint64_t taken = lc_answer_requests[server].taken_ns;
    lc_answers_received(server, get, sizeof get);
    lc_answers_received(server, get, 0); /* end of file */
    lc_answers_received(server, get, -1);
    CHECK(lc_answer_requests[server].taken_ns == taken);
    lc_answers_received(server, "\x00\xff", 2); /* whatever it is: the request goes on */
    CHECK(lc_answer_requests[server].taken_ns > taken && answer_of(server, &answer));
}

static void a_descriptor_that_is_another_socket_s_by_now_answers_nothing(int server)
{
    lc_answer answer;
    int client, another;
    connect_tcp(&client, &another);
    const int copy = dup(server);
    begin_to_time(copy, get);
    CHECK(lc_answers_awaited(copy));
    CHECK(dup2(another, copy) == copy);
    CHECK(!answer_of(copy, &answer) && !lc_answers_awaited(copy));
    CHECK(dup2(server, copy) == copy);
    begin_to_time(copy, get);
    CHECK(dup2(another, copy) == copy);
    lc_answers_received(copy, "\x00\xff", 2);
    CHECK(!lc_answers_awaited(copy));
    close(copy);
    close(client);
    close(another);
}

static void what_is_no_stream_or_timed_elsewhere_is_left_alone(int server)
{
    lc_answer answer;
    int pair[2], ends[2];
    CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0 && pipe(ends) == 0);
    const int others[] = {pair[0], ends[0], -1, (int)LC_ANSWERS_CONNECTIONS};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        errno = ERANGE;
        begin_to_time(others[i], get);
        CHECK(errno == ERANGE && !lc_answers_awaited(others[i]) && !answer_of(others[i], &answer));
        lc_answers_leave(others[i]);
    }
    const int copy = dup(server);
    lc_answers_leave(copy);
    begin_to_time(copy, get);
    CHECK(!lc_answers_awaited(copy));
    int client, another;
    connect_tcp(&client, &another);
    CHECK(dup2(another, copy) == copy); /* what was said of the other one does not hold */
    begin_to_time(copy, get);
    CHECK(answer_of(copy, &answer));
    lc_answers_end();
    lc_answers_received(copy, get, sizeof get);
    CHECK(!lc_answers_awaited(copy));
    close(copy);
    close(client);
    close(another);
    close(pair[0]);
    close(pair[1]);
    close(ends[0]);
    close(ends[1]);
}

/* ---- TLS ------------------------------------------------------------------------------------- */

static int sockets_of_session[2];
static char sessions[2];

static int fd_of(const void *session) { return sockets_of_session[(const char *)session - sessions]; }

static bool enciphers(const void *session, lc_answer *answer)
{
    return lc_answers_awaited_by(session) && lc_answers_enciphering(session, lc_now_ns(), answer);
}

static void what_tls_hides_is_timed_where_it_is_deciphered(int server)
{
    lc_answer answer;
    static const char record[] = "\x17\x03\x03\x00\x30";
    /* By a loop: the bytes were received for the session just before. */
    sockets_of_session[0] = -1;
    lc_answers_record_fd = -1;
    lc_answers_begin();
    lc_answers_deciphered(&sessions[0], fd_of, get, sizeof get); /* from nowhere */
    CHECK(!lc_answers_awaited_by(&sessions[0]));
    lc_answers_begin();
    lc_answers_received(server, record, sizeof record);
    lc_answers_deciphered(&sessions[0], fd_of, get, sizeof get);
    CHECK(lc_answers_awaited_by(&sessions[0]) && !lc_answers_awaited_by(&sessions[1]));
    CHECK(!answer_of(server, &answer)); /* a ticket of the handshake's */
    const uint64_t taken = lc_answer_requests[server].taken_ns;
    lc_answers_deciphered(&sessions[0], fd_of, "\x00\xff", 2);
    CHECK(taken != 0 && lc_answer_requests[server].taken_ns == taken);
    lc_answers_received(server, record, sizeof record); /* its body */
    CHECK(lc_answer_requests[server].taken_ns > taken);
    CHECK(enciphers(&sessions[0], &answer) && strcmp(lc_answers_method(&answer), "GET") == 0);
    CHECK(!lc_answers_awaited_by(&sessions[0]) && !enciphers(&sessions[0], &answer) && !lc_answers_awaited(server));
    /* With a socket of its own. */
    sockets_of_session[1] = server;
    lc_answers_begin();
    lc_answers_deciphered(&sessions[1], fd_of, get, sizeof get);
    const uint64_t taken_too = lc_answer_requests[server].taken_ns;
    lc_answers_deciphered(&sessions[1], fd_of, "\x00\xff", 2);
    CHECK(lc_answer_requests[server].taken_ns > taken_too && enciphers(&sessions[1], &answer));
    /* One that is answered no more, and whose descriptor another request has by now. */
    lc_answers_begin();
    lc_answers_deciphered(&sessions[1], fd_of, get, sizeof get);
    CHECK(lc_answers_awaited_by(&sessions[1]));
    lc_answer_requests[server].session = 0;
    CHECK(!enciphers(&sessions[1], &answer) && answer_of(server, &answer));
    /* What is timed elsewhere, or no request. */
    lc_answers_begin();
    lc_answers_deciphered(&sessions[1], fd_of, "PRI * HTTP/2.0", 14);
    CHECK(!lc_answers_awaited_by(&sessions[1]));
    lc_answers_leave(server);
    lc_answers_deciphered(&sessions[1], fd_of, get, sizeof get);
    CHECK(!lc_answers_awaited_by(&sessions[1]) && !lc_answers_awaited(server));
    lc_answer_requests[server].elsewhere = 0;
}

static void a_session_and_a_descriptor_that_are_others_by_now_begin_anew(int server)
{
    int other_client, other_server;
    lc_answer answer;
    connect_tcp(&other_client, &other_server);
    const int descriptor = dup(server);
    sockets_of_session[1] = descriptor;
    lc_answers_begin();
    lc_answers_deciphered(&sessions[1], fd_of, get, sizeof get); /* nobody answers it */
    CHECK(dup2(other_server, descriptor) == descriptor);
    for (unsigned i = 1; i < LC_ANSWERS_ONE_OF; i++) {
        lc_answers_received(server, get, sizeof get);
    }
    lc_answers_deciphered(&sessions[1], fd_of, get, sizeof get);
    CHECK(lc_answers_awaited(descriptor) && !answer_of(descriptor, &answer)); /* what the session sends by itself */
    CHECK(enciphers(&sessions[1], &answer) && !lc_answers_awaited(descriptor));
    close(descriptor);
    close(other_client);
    close(other_server);
}

/* ---- Unix sockets ------------------------------------------------------------------------- */

static lc_look scripted;
static bool has_loop;

static bool scripted_look(uint64_t now_ns, lc_look *out)
{
    (void)now_ns;
    *out = scripted;
    return has_loop;
}

#define ONE_NS_A_TICK (UINT64_C(1) << 32)
#define MS UINT64_C(1000000)

/* The loop looked again after a turn of that length, the wait between them lasted so long. */
static void next_look(uint64_t turn_ns, uint64_t wait_ns)
{
    const bool rested = wait_ns > LC_LOOK_REST_NS;
    const uint64_t ended = scripted.until_ns + turn_ns;
    scripted.after_ns = rested ? ended + wait_ns : scripted.until_ns;
    scripted.until_ns = rested ? ended + wait_ns : ended;
    scripted.rested += wait_ns;
}

static void start_looking(void)
{
    const uint64_t now = lc_now_ns() - 10000 * MS;
    scripted = (lc_look){.after_ns = now, .until_ns = now, .rate = ONE_NS_A_TICK};
    has_loop = true;
}

static uint64_t arrival_of(int fd) { return lc_answer_requests[fd].arrived_ns; }

static void of_unix_sockets_the_loop_s_looks_tell(void)
{
    lc_answer answer;
    int pair[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    lc_answers_set_looker(scripted_look);
    start_looking();
    next_look(200 * MS, 0);
    begin_to_time(pair[0], get);
    CHECK(arrival_of(pair[0]) == scripted.after_ns + 100 * MS && scripted.until_ns - scripted.after_ns == 200 * MS);
    next_look(40 * MS, 0);
    lc_answers_received(pair[0], "\x00\xff", 2); /* more of it, found by the next look */
    CHECK(arrival_of(pair[0]) == scripted.after_ns + 20 * MS && answer_of(pair[0], &answer));
    next_look(200 * MS, 5 * MS); /* what ends a wait came then */
    begin_to_time(pair[0], get);
    CHECK(arrival_of(pair[0]) == scripted.until_ns && answer_of(pair[0], &answer));
    has_loop = false; /* a thread without one takes what it waits for */
    begin_to_time(pair[0], get);
    CHECK(answer_of(pair[0], &answer) && answer.arrived_ns == answer.taken_ns);
    lc_answers_set_looker(NULL);
    begin_to_time(pair[0], get);
    CHECK(answer_of(pair[0], &answer) && answer.arrived_ns == answer.taken_ns);
    close(pair[0]);
    close(pair[1]);
}

enum { TOGETHER = 3 };

static void time_the_next(int server)
{
    lc_answer answer;
    do {
        lc_answers_received(server, get, sizeof get);
    } while (!answer_of(server, &answer));
    for (unsigned i = 1; i < LC_ANSWERS_ONE_OF; i++) {
        lc_answers_received(server, get, sizeof get);
    }
}

static int reconnected(int client, const struct sockaddr_un *address, socklen_t length)
{
    close(client);
    const int fresh = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(connect(fresh, (const struct sockaddr *)address, length) == 0);
    return fresh;
}

static void connections_that_wait_together_came_since_the_look_before_the_first(int server)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t length = sizeof(sa_family_t); /* a name of the kernel's choice */
    int clients[TOGETHER], servers[TOGETHER];
    lc_answer answer;
    const int listening = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(bind(listening, (struct sockaddr *)&address, length) == 0 && listen(listening, TOGETHER) == 0);
    length = sizeof address;
    CHECK(getsockname(listening, (struct sockaddr *)&address, &length) == 0);
    lc_answers_set_looker(scripted_look);
    lc_answers_begin();
    start_looking();
    for (int i = 0; i < TOGETHER; i++) {
        clients[i] = socket(AF_UNIX, SOCK_STREAM, 0);
        CHECK(connect(clients[i], (struct sockaddr *)&address, length) == 0);
    }
    next_look(200 * MS, 0);
    const uint64_t began = scripted.after_ns;
    for (int i = 0; i < TOGETHER; i++) { /* one in a turn, as libuv accepts them */
        servers[i] = accept(listening, NULL, NULL);
        CHECK(servers[i] >= 0);
        errno = ERANGE;
        lc_answers_accepted(listening, servers[i]);
        CHECK(errno == ERANGE);
        const lc_answer_request *noted = &lc_answer_requests[servers[i]];
        CHECK(i > 0 ? noted->came_ns > began + 100 * MS : noted->came_ns == began + 100 * MS);
        next_look(1 * MS / 10, 0);
    }
    for (int i = 0; i < TOGETHER; i++) { /* its first request came with it, its second did not */
        const uint64_t came = lc_answer_requests[servers[i]].came_ns;
        time_the_next(server);
        lc_answers_received(servers[i], get, sizeof get);
        CHECK(arrival_of(servers[i]) == came && answer_of(servers[i], &answer));
        next_look(1 * MS, 0);
        time_the_next(server);
        lc_answers_received(servers[i], get, sizeof get);
        CHECK(arrival_of(servers[i]) == scripted.after_ns + MS / 2 && answer_of(servers[i], &answer));
    }
    /* Nobody waits any more: the next one came since the look before its own; but its bytes after a rest. */
    clients[0] = reconnected(clients[0], &address, length);
    next_look(200 * MS, 0);
    close(servers[0]);
    servers[0] = accept(listening, NULL, NULL);
    lc_answers_accepted(listening, servers[0]);
    CHECK(lc_answer_requests[servers[0]].came_ns == scripted.after_ns + 100 * MS);
    next_look(1 * MS, 50 * MS);
    time_the_next(server);
    lc_answers_received(servers[0], get, sizeof get);
    CHECK(arrival_of(servers[0]) == scripted.until_ns && answer_of(servers[0], &answer));
    for (int i = 0; i < TOGETHER; i++) {
        close(clients[i]);
        close(servers[i]);
    }
    close(listening);
    lc_answers_set_looker(NULL);
}

static void rows_count_what_their_threads_answer(void)
{
    lc_answers_begin();
    lc_answer_row *row = lc_answers_row(7, "MainThread");
    CHECK(row == lc_answers_row(7, "another name") && row != lc_answers_row(8, "") && strcmp(row->thread, "MainThread") == 0);
    CHECK(lc_answers_count(row, &(lc_answer){100, 130, 200, 0}));
    lc_answers_name_worst(row, "GET /");
    CHECK(!lc_answers_count(row, &(lc_answer){1000, 1000, 1010, 0}));
    CHECK(row->events == 2 && row->lag_ns == 110 && row->waited_ns == 30 && row->worst_ns == 100);
    CHECK(row->counts[lc_answers_bucket(100)] == 1 && row->counts[lc_answers_bucket(10)] == 1);
    CHECK(strcmp(row->worst, "GET /") == 0);
    uint64_t ident = 9;
    while (lc_answers_row(ident, "") != &lc_answer_rows[0]) {
        ident++;
        CHECK(ident < 9 + LC_ANSWERS_ROWS);
    }
    CHECK(ident == 7 + LC_ANSWERS_ROWS - 1 && lc_answers_row(ident - 1, "") == &lc_answer_rows[LC_ANSWERS_ROWS - 1]);
    lc_answers_begin();
    CHECK(row->events == 0 && row->worst[0] == '\0' && lc_answers_row(8, "") == &lc_answer_rows[1]);
}

int main(void)
{
    int client, server;
    connect_tcp(&client, &server);
    CHECK(send(client, get, sizeof get, 0) == sizeof get);
    one_of_some_is_timed_and_its_first_byte_counts(server);
    only_requests_of_http_are_timed(server);
    more_bytes_before_the_answer_move_the_arrival_on_and_another_request_does_not(server);
    a_descriptor_that_is_another_socket_s_by_now_answers_nothing(server);
    what_is_no_stream_or_timed_elsewhere_is_left_alone(server);
    what_tls_hides_is_timed_where_it_is_deciphered(server);
    a_session_and_a_descriptor_that_are_others_by_now_begin_anew(server);
    of_unix_sockets_the_loop_s_looks_tell();
    connections_that_wait_together_came_since_the_look_before_the_first(server);
    rows_count_what_their_threads_answer();
    close(client);
    close(server);
    return 0;
}
