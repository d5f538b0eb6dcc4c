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

bool lc_feed_send(const lc_feed *feed, const char *text, size_t bytes);

/* ---- progress -------------------------------------------------------------------------------------------
 * For how long a loop has been in its present turn, as the watchdog itself saw it.
 *
 * What is summed up is the time between the watchdog's looks, and of each no more than LC_PROGRESS_STEP_NS:
 * while the process is stopped (SIGSTOP, a debugger) or the machine sleeps, the watchdog does not look
 * either, and that time is nobody's fault. */

#define LC_PROGRESS_STEP_NS UINT64_C(2000000000)
#define LC_PROGRESS_LOOK_NS UINT64_C(500000000) /* how often to look at a loop in a turn, at least */

/* All zeros: nothing was seen yet. */
typedef struct {
    uint64_t generation; /* of the lane */
    uint64_t turn;       /* its turn_epoch at the last look */
    uint64_t looked_ns;
    uint64_t held_ns;          /* in this turn */
    uint64_t grant_epoch;      /* the callback to which `expect` granted... */
    uint64_t grant_ns;         /* ...this much; */
    uint64_t grants_before_ns; /* and to callbacks of the turn before it */
} lc_progress;

/* What a lane says now. */
typedef struct {
    uint64_t generation;
    uint64_t turn; /* odd: in a turn */
    uint64_t grant_epoch;
    uint64_t grant_ns; /* 0: none */
} lc_progress_facts;

/* Notes a look at `now_ns`. Answers how long the turn has lasted without what was granted to it; 0: it
 * waits. Pure but for `progress`. */
uint64_t lc_progress_note(lc_progress *progress, const lc_progress_facts *facts, uint64_t now_ns);
