#include "core/liveness/progress.h"

#include <string.h>
#include <unistd.h>

static void note_grant(lc_progress *p, const lc_progress_facts *facts)
{
    if (facts->grant_ns == 0) {
        return;
    }
    if (facts->grant_epoch != p->grant_epoch) {
        p->grants_before_ns += p->grant_ns;
        p->grant_epoch = facts->grant_epoch;
        p->grant_ns = 0;
    }
    if (facts->grant_ns > p->grant_ns) {
        p->grant_ns = facts->grant_ns;
    }
}

uint64_t lc_progress_note(lc_progress *p, const lc_progress_facts *facts, uint64_t now_ns)
{
    const bool is_same = facts->generation == p->generation && facts->turn == p->turn;
    if (!is_same || !(facts->turn & 1u)) {
        *p = (lc_progress){.generation = facts->generation, .turn = facts->turn, .looked_ns = now_ns};
    }
    if (!(facts->turn & 1u)) {
        return 0;
    }
    const uint64_t step = now_ns > p->looked_ns ? now_ns - p->looked_ns : 0u;
    p->held_ns += step < LC_PROGRESS_STEP_NS ? step : LC_PROGRESS_STEP_NS;
    p->looked_ns = now_ns;
    note_grant(p, facts);
    const uint64_t granted = p->grants_before_ns + p->grant_ns;
    return p->held_ns > granted ? p->held_ns - granted : 0u;
}

enum { TRIES = 4 }; /* in an interval, where the socket is full */

void lc_feed_open(lc_feed *feed, const char *socket_name, uint64_t interval_ns)
{
    const size_t bytes = socket_name == NULL ? 0 : strlen(socket_name);
    memset(feed, 0, sizeof *feed);
    if (bytes < 2 || bytes >= sizeof feed->address.sun_path ||
        (socket_name[0] != '/' && socket_name[0] != '@')) {
        return;
    }
    feed->address.sun_family = AF_UNIX;
    memcpy(feed->address.sun_path, socket_name, bytes);
    if (socket_name[0] == '@') {
        feed->address.sun_path[0] = '\0';
    }
    feed->address_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + bytes);
    feed->interval_ns = interval_ns;
}

lc_feed_message lc_feed_due(const lc_feed *feed, uint64_t now_ns, uint64_t held_ns)
{
    if (feed->interval_ns == 0) {
        return LC_FEED_NOTHING;
    }
    if (held_ns > feed->interval_ns) {
        return feed->is_stuck ? LC_FEED_NOTHING : LC_FEED_STUCK;
    }
    if (now_ns < feed->next_ns) {
        return LC_FEED_NOTHING;
    }
    return feed->is_stuck ? LC_FEED_RECOVERED : LC_FEED_ALIVE;
}

void lc_feed_said(lc_feed *feed, lc_feed_message message, uint64_t now_ns, bool was_sent)
{
    if (message == LC_FEED_STUCK) {
        feed->is_stuck = true; /* also where it was not sent: what counts is that nothing is sent */
        feed->next_ns = now_ns;
    } else if (message != LC_FEED_NOTHING) {
        feed->is_stuck = feed->is_stuck && !was_sent;
        feed->next_ns = now_ns + (was_sent ? feed->interval_ns : feed->interval_ns / TRIES);
    }
}

uint64_t lc_feed_next_ns(const lc_feed *feed)
{
    return feed->interval_ns == 0 || feed->is_stuck ? UINT64_MAX : feed->next_ns;
}

bool lc_feed_send(const lc_feed *feed, const char *text, size_t bytes)
{
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return false;
    }
    const ssize_t sent = sendto(fd, text, bytes, MSG_DONTWAIT | MSG_NOSIGNAL,
                                (const struct sockaddr *)&feed->address, feed->address_bytes);
    close(fd);
    return sent == (ssize_t)bytes;
}
