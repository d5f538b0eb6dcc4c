/* What is timed of a connection's requests, on real sockets. */
#include "core/answers/answers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/check.h"
#include "core/clock/clock.h"

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
    static const char *const others[] = {"\x16\x03\x01\x02\x01",
                                         "\x17\x03\x03\x01\x20",
                                         "\x81\x85\x01\x02\x03",
                                         "PRI * HTTP/2.0",
                                         "HTTP/1.1 200 OK",
                                         "hello, world",
                                         "GETTING",
                                         "GET"};
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

static void a_server_tells_whose_turn_it_is_and_what_it_answers(int server)
{
    lc_answer answer;
    char name[16];
    lc_answers_fresh = 0;
    lc_answers_name(server, "nobody asks");
    begin_to_time(server, get);
    CHECK(lc_answers_fresh == server + 1);
    lc_answer_requests[server].taken_ns -= 1000;
    const uint64_t taken = lc_answer_requests[server].taken_ns;
    lc_answers_handled(server);
    CHECK(lc_answer_requests[server].taken_ns > taken);
    lc_answers_name(server, "GET /orders/{order_id}");
    CHECK(answer_of(server, &answer) && lc_answers_named(&answer, name, sizeof name));
    CHECK(strcmp(name, "GET /orders/{or") == 0);
    lc_answers_received(server, get, sizeof get);
    CHECK(!answer_of(server, &answer) && !lc_answers_named(&answer, name, sizeof name));
    lc_answers_handled(server);
    CHECK(!lc_answers_awaited(server)); /* it was answered */
}

static void what_is_no_tcp_is_left_alone(int server)
{
    lc_answer answer;
    int datagrams[2], streams[2], ends[2];
    CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, datagrams) == 0 &&
          socketpair(AF_UNIX, SOCK_STREAM, 0, streams) == 0 && pipe(ends) == 0);
    const int others[] = {datagrams[0], streams[0], ends[0], -1, (int)LC_ANSWERS_CONNECTIONS};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        errno = ERANGE;
        begin_to_time(others[i], get);
        CHECK(errno == ERANGE && !lc_answers_awaited(others[i]) && !answer_of(others[i], &answer));
        lc_answers_handled(others[i]);
        lc_answers_name(others[i], "GET /orders");
        CHECK(!lc_answers_awaited(others[i]));
    }
    int client, another;
    connect_tcp(&client, &another);
    const int copy = dup(server);
    begin_to_time(copy, get);
    CHECK(answer_of(copy, &answer));
    lc_answers_end();
    lc_answers_received(copy, get, sizeof get);
    CHECK(!lc_answers_awaited(copy));
    close(copy);
    close(client);
    close(another);
    for (int i = 0; i < 2; i++) {
        close(datagrams[i]);
        close(streams[i]);
        close(ends[i]);
    }
}

static void rows_count_what_their_threads_answer(void)
{
    lc_answers_begin();
    lc_answer_row *row = lc_answers_row(7, "MainThread");
    CHECK(row == lc_answers_row(7, "another name") && row != lc_answers_row(8, "") &&
          strcmp(row->thread, "MainThread") == 0);
    CHECK(lc_answers_count(row, &(lc_answer){100, 130, 200, 0, 3}));
    lc_answers_name_worst(row, "GET /");
    CHECK(!lc_answers_count(row, &(lc_answer){1000, 1000, 1010, 0, 3}));
    CHECK(row->events == 2 && row->lag_ns == 110 && row->waited_ns == 30 && row->worst_ns == 100);
    CHECK(row->counts[lc_answers_bucket(100)] == 1 && row->counts[lc_answers_bucket(10)] == 1);
    CHECK(strcmp(row->worst, "GET /") == 0);
    uint64_t ident = 9;
    while (lc_answers_row(ident, "") != &lc_answer_rows[0]) {
        ident++;
        CHECK(ident < 9 + LC_ANSWERS_ROWS);
    }
    CHECK(ident == 7 + LC_ANSWERS_ROWS - 1 &&
          lc_answers_row(ident - 1, "") == &lc_answer_rows[LC_ANSWERS_ROWS - 1]);
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
    a_server_tells_whose_turn_it_is_and_what_it_answers(server);
    what_is_no_tcp_is_left_alone(server);
    rows_count_what_their_threads_answer();
    close(client);
    close(server);
    return 0;
}
