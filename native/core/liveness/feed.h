/* The service manager's watchdog (sd_notify(3)): it is fed while every loop makes progress.
 *
 * The watchdog's thread alone. Nothing here blocks, allocates or takes the GIL. Each message has a socket of
 * its own, which is closed at once: programs count their descriptors.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

typedef enum {
    LC_FEED_NOTHING = 0,
    LC_FEED_ALIVE = 1,    /* say that the program lives */
    LC_FEED_STUCK = 2,    /* say why no further message that it lives will come */
    LC_FEED_RECOVERED = 3 /* say that the program lives, and that LC_FEED_STUCK is over */
} lc_feed_message;

typedef struct {
    /* time between messages: half of the manager's timeout. A longer turn is stuck. 0: no manager waits */
    uint64_t interval_ns;
    uint64_t next_ns; /* when the next one is due */
    bool is_stuck;    /* LC_FEED_STUCK was due */
    socklen_t address_bytes;
    struct sockaddr_un address;
} lc_feed;

/* `socket`: as NOTIFY_SOCKET has it, a path or an abstract name behind an '@'; NULL or one that does not
 * fit: none is fed. */
void lc_feed_open(lc_feed *feed, const char *socket, uint64_t interval_ns);

/* Which message is due at `now_ns`, when the longest turn has lasted for `held_ns`. Pure. */
lc_feed_message lc_feed_due(const lc_feed *feed, uint64_t now_ns, uint64_t held_ns);
/* Notes that the message was sent, or could not be. Pure. */
void lc_feed_said(lc_feed *feed, lc_feed_message message, uint64_t now_ns, bool was_sent);
/* When to look again; UINT64_MAX: when a loop moves on. Pure. */
uint64_t lc_feed_next_ns(const lc_feed *feed);

/* Whether the manager's socket took the message. */
bool lc_feed_send(const lc_feed *feed, const char *text, size_t bytes);
