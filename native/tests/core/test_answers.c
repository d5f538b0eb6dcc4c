/* What is timed of a connection's messages, on real sockets. */
#include "answers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

static const char request[] = "GET /";

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

static void only_accepted_connections_are_timed_and_one_of_some(int server)
{
    lc_answer answer;
    unsigned timed = 0;
    lc_answers_begin();
    lc_answers_received(server, request, sizeof request);
    CHECK(!lc_answers_sent(server, &answer));
    lc_answers_note_connection(server, true);
    for (unsigned i = 0; i < 4 * LC_ANSWERS_ONE_OF; i++) {
        lc_answers_received(server, request, sizeof request);
        timed += lc_answers_sent(server, &answer);
        CHECK(!lc_answers_sent(server, &answer)); /* the first byte counts, not each */
    }
    CHECK(timed == 4);
    CHECK(answer.arrived_ns <= answer.taken_ns && answer.taken_ns <= answer.sent_ns);
}

static void begin_to_time(int server, const void *data)
{
    lc_answers_begin(); /* the next one is one of those that are timed */
    lc_answers_note_connection(server, true);
    lc_answers_received(server, data, 5);
}

static void what_is_no_request_is_not_timed(int server)
{
    lc_answer answer;
    static const char *const others[] = {"\x16\x03\x01\x02\x00", "\x17\x03\x03\x00\x20", "\x81\x85\x01\x02\x03",
                                         "\x00\x00\x12\x01\x05"};
    for (unsigned i = 0; i < 4; i++) {
        begin_to_time(server, others[i]);
        CHECK(!lc_answers_sent(server, &answer));
    }
    begin_to_time(server, request);
    lc_answers_received(server, request, 0); /* end of file */
    lc_answers_received(server, request, -1);
    CHECK(lc_answers_sent(server, &answer));
}

static void more_bytes_before_the_answer_move_the_arrival_on(int server)
{
    lc_answer first, second;
    begin_to_time(server, request);
    CHECK(lc_answers_sent(server, &first));
    begin_to_time(server, request);
    lc_answers_received(server, "\x00\xff\x00\xff", 4); /* whatever it is: the request goes on */
    CHECK(lc_answers_sent(server, &second));
    CHECK(second.taken_ns >= first.sent_ns);
}

static void other_sockets_are_forgotten(int server)
{
    int pair[2];
    lc_answer answer;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    errno = ERANGE;
    begin_to_time(pair[0], request);
    CHECK(errno == ERANGE && !lc_answers_knows(pair[0]) && !lc_answers_sent(pair[0], &answer));
    begin_to_time(server, request);
    lc_answers_note_connection(server, false); /* its number is a client's by now */
    CHECK(!lc_answers_sent(server, &answer));
    lc_answers_note_connection(-1, true);
    lc_answers_note_connection((int)LC_ANSWERS_CONNECTIONS, true);
    CHECK(!lc_answers_knows(-1) && !lc_answers_knows((int)LC_ANSWERS_CONNECTIONS));
    begin_to_time(server, request);
    lc_answers_end();
    CHECK(lc_answers_sent(server, &answer));
    lc_answers_received(server, request, sizeof request);
    CHECK(!lc_answers_sent(server, &answer));
}

static void rows_count_what_their_threads_answer(void)
{
    lc_answers_begin();
    lc_answer_row *row = lc_answers_row(7, "MainThread");
    CHECK(row == lc_answers_row(7, "another name") && row != lc_answers_row(8, "") && strcmp(row->thread, "MainThread") == 0);
    CHECK(lc_answers_count(row, &(lc_answer){100, 130, 200}));
    lc_answers_name_worst(row, "GET /");
    CHECK(!lc_answers_count(row, &(lc_answer){1000, 1000, 1010}));
    CHECK(row->events == 2 && row->lag_ns == 110 && row->waited_ns == 30 && row->worst_ns == 100);
    CHECK(row->counts[lc_answers_bucket(100)] == 1 && row->counts[lc_answers_bucket(10)] == 1);
    CHECK(strcmp(row->worst, "GET /") == 0);
    for (uint64_t ident = 9; lc_answers_row(ident, "") != NULL; ident++) {
        CHECK(ident < 9 + LC_ANSWERS_ROWS);
    }
    lc_answers_begin();
    CHECK(row->events == 0 && row->worst[0] == '\0' && lc_answers_row(8, "") == &lc_answer_rows[1]);
}

int main(void)
{
    int client, server;
    connect_tcp(&client, &server);
    CHECK(send(client, request, sizeof request, 0) == sizeof request);
    only_accepted_connections_are_timed_and_one_of_some(server);
    what_is_no_request_is_not_timed(server);
    more_bytes_before_the_answer_move_the_arrival_on(server);
    other_sockets_are_forgotten(server);
    rows_count_what_their_threads_answer();
    close(client);
    close(server);
    return 0;
}
