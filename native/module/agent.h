/* The engine's native half in this process: one, made by start() and given back by stop(), both under the
 * GIL. Everything that the program's threads reach is here.
 *
 * `generation` changes at each start and stop. Code that keeps something of the agent across a call into the
 * program (a lane, an open bracket) keeps the generation too, and forgets both where the number has changed:
 * stop() unmaps the lanes, also while callbacks are running.
 */
#pragma once

#include <Python.h>
#include <stdbool.h>

#include "cpython/source/cpython_source.h"
#include "core/watchdog/watchdog.h"

typedef struct {
    bool running;
    uint64_t generation;
    PyObject *scene_variable; /* ContextVar of the scene, once one was used; else NULL */
    uint64_t threshold_ns;
    uint64_t sample_delay_ns;
    lc_flight flight;
    lc_kept_file lent[4]; /* more descriptors of its file, for Python, which closes them */
    lc_memory_reader reader;
    lc_cpython_source source;
    lc_watchdog watchdog;
    lc_courier courier;
    uint64_t threads_storing; /* to their lanes, without the GIL; atomic */
    /* called once, on a thread of ours, when there will be no keeper; else NULL */
    PyObject *on_take_over;
    PyObject *on_first_lane; /* called once, when a thread wants a lane and nothing runs; else NULL */
} lc_agent;

extern lc_agent lc_the_agent;

#define LC_AGENT_RUNS(remembered) (lc_the_agent.generation == (remembered) && lc_the_agent.running)

/* A thread that stores to a lane without the GIL says so first, and looks at the generation then: the
 * agent may stop at any moment and unmap the lane, but changes the generation first and then looks whether
 * any thread stores. */

/* Whether the agent of this generation runs; between the two its lanes' memory stays. */
static inline bool lc_storing_begin(uint64_t generation)
{
    __atomic_fetch_add(&lc_the_agent.threads_storing, 1u, __ATOMIC_SEQ_CST);
    return __atomic_load_n(&lc_the_agent.generation, __ATOMIC_SEQ_CST) == generation;
}

static inline void lc_storing_end(void)
{
    __atomic_fetch_sub(&lc_the_agent.threads_storing, 1u, __ATOMIC_SEQ_CST);
}

/* Nanoseconds, monotonic; negative seconds: never. */
uint64_t lc_deadline_after(double seconds);

/* All take the GIL as held, and let go of it while they wait for the watchdog, until the deadline (ns,
 * monotonic). */
bool lc_agent_start(const char *path, const char *checkpoint_path, const char *facts, Py_ssize_t facts_bytes,
                    const lc_watchdog_settings *settings, uint64_t threshold_ns, uint64_t sample_delay_ns,
                    lc_taker taker); /* false: a Python exception is set */
/* Where the watchdog does not end in time, it, its memory and the flight are left alone. */
void lc_agent_stop(bool process_ends, uint64_t deadline_ns);
/* In a forked child: the watchdog's thread is not there; its memory is given back without a wait. */
void lc_agent_forget_after_fork(void);
/* Why the engine cannot start in this process, NULL where it can. Makes no file and no thread. */
const char *lc_agent_obstacle(void);
/* Ends the threads of watchdog and courier and starts the watchdog's again; what it knows of open stalls
 * stays, and in between only samples are missed. Both idempotent. */
/* how many threads have ended; resume() lets those go on that have not */
int lc_agent_pause(uint64_t deadline_ns);
bool lc_agent_resume(void); /* false: the system gives no thread, an exception is set */

/* The end of the process, where a keeper takes its stalls: ends the watchdog, says so in the header, and
 * waits until the keeper has stored all and its texts are written. False: not by the deadline, or there is
 * no keeper. */
bool lc_agent_end_with_keeper(uint64_t deadline_ns);
/* Lanes that had a turn; 0 where the engine does not run. */
uint64_t lc_agent_lanes_used(void);
/* Stalls that have ended, those too that the watchdog has still to see; 0 as above. */
uint64_t lc_agent_stalls(void);
PyObject *lc_stalls_ended(PyObject *module, PyObject *unused);       /* the same for Python */
PyObject *lc_spare_addresses_py(PyObject *module, PyObject *unused); /* core/host/process_facts.h */
/* Something was noted beside the flight file: wakes the drain, or has the keeper called. Any thread, with
 * the GIL or without. */
void lc_agent_tell(void);
/* One more descriptor of the flight file, which the caller closes, and a forked child does; -1: an errno. */
int lc_agent_lend_flight(void);
/* lc_watchdog.run_errand (module/keeper/line.c): without the GIL. False: no thread could be made. */
bool lc_errand_run(void);
/* Rings the keeper's bell: 0; or an errno (courier.h); ESRCH: the engine does not run. */
int lc_agent_ring_keeper(uint64_t deadline_ns);

/* Adds note_patch(line) -> bool and patches() -> bytes (core/patches/patches.h), and c_code; negative with an
 * exception set where that fails. */
int lc_patches_add(PyObject *module);
