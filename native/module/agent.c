#include "module/agent.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "core/answers/answers.h"
#include "core/patches/patches.h"
#include "core/signals/kill_signals.h"
#include "core/start/start.h"
#include "module/bindings.h"
#include "module/quiet_thread.h"

lc_agent lc_the_agent;

enum { LENT_MAX = sizeof lc_the_agent.lent / sizeof *lc_the_agent.lent };

static const char no_reader[] =
    "this process may read its own memory neither by process_vm_writev or process_vm_readv nor by "
    "/proc/self/mem (seccomp?)";
static const char still_there[] = "the watchdog of the engine before waits for a disk that does not answer";

/* Several threads may end the watchdog at once (the drain at its end, a caller that would not wait for it
 * any longer, a fork beside them): each asks under the GIL, and waits without it. */
static void end_watchdog(lc_agent *agent, uint64_t deadline_ns)
{
    lc_watchdog_ask_to_stop(&agent->watchdog);
    Py_BEGIN_ALLOW_THREADS(void)
    lc_life_stops_by(&agent->watchdog.life, deadline_ns);
    Py_END_ALLOW_THREADS
}

/* After the watchdog, which may call it at its last look. */
static void end_courier(lc_agent *agent, uint64_t deadline_ns)
{
    lc_bell *const life = &agent->courier.life;
    Py_BEGIN_ALLOW_THREADS
    do {
        lc_courier_ask_to_stop(&agent->courier);
    } while (lc_life_stops_by(life, deadline_ns) && !lc_life_is(life, LC_LIFE_OVER) &&
             lc_now_ns() < deadline_ns);
    Py_END_ALLOW_THREADS
}

static void end_threads(lc_agent *agent, uint64_t deadline_ns)
{
    end_watchdog(agent, deadline_ns);
    end_courier(agent, deadline_ns);
}

static bool threads_are_over(const lc_agent *agent)
{
    return lc_life_is(&agent->watchdog.life, LC_LIFE_OVER) && lc_life_is(&agent->courier.life, LC_LIFE_OVER);
}

/* A child shares the flight file's pages with its parent, and while CPython sets it up it already ends the
 * lanes of threads that it does not have (thread_lane.c, close_lane). And one that C code makes runs no
 * hook of Python's, and may become another user. So all pages and files are let go of inside fork(2). */
static void let_go_in_child(void)
{
    lc_patches_leave();
    lc_answers_end();
    lc_start_leave();
    lc_kill_signals_leave();
    lc_quiet_threads_leave();
    lc_the_agent.running = false;
    lc_the_agent.generation++;
    lc_the_agent.threads_storing = 0; /* they are not here, and a thread that stores does not fork */
    atomic_store(&lc_the_agent.courier.life, LC_LIFE_OVER);
    lc_watchdog_close(&lc_the_agent.watchdog); /* its life is over, too */
    lc_memory_reader_close(&lc_the_agent.reader);
    lc_flight_leave(&lc_the_agent.flight);
    for (size_t i = 0; i < LENT_MAX; i++) {
        lc_kept_file_close(&lc_the_agent.lent[i]);
    }
    lc_close_all_left();
}

static bool prepare_for_forks(void)
{
    static bool prepared; /* under the GIL; handlers cannot be taken back */
    if (!prepared) {
        const int error = pthread_atfork(NULL, NULL, let_go_in_child);
        if (error != 0) {
            (void)lc_os_error(error);
            return false;
        }
        prepared = true;
        (void)lc_patch_note("+hook pthread_atfork, for good");
    }
    return true;
}

static void give_back(lc_agent *agent, bool process_ends)
{
    lc_patches_leave();
    lc_watchdog_close(&agent->watchdog);
    agent->courier.flight = NULL;
    if (agent->source.deaths != NULL) {
        lc_code_deaths_leave();
        /* what else is in the source stays, and a start that fails gives back once more */
        agent->source.deaths = NULL;
    }
    lc_cpython_source_close(&agent->source);
    lc_memory_reader_close(&agent->reader);
    /* The generation has changed by now: a thread that begins to store from here on sees that
     * (lc_storing_begin). */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    agent->flight.is_stored_to |= __atomic_load_n(&agent->threads_storing, __ATOMIC_SEQ_CST) != 0;
    lc_flight_close(&agent->flight, process_ends);
    lc_close_all_left();
}

static bool open_parts(lc_agent *agent, const char *path, const char *checkpoint_path,
                       const lc_watchdog_settings *settings)
{
    const char *why_not = NULL;
    if (lc_memory_reader_open(&agent->reader, getpid()) == LC_READER_NONE) {
        PyErr_SetString(PyExc_RuntimeError, no_reader);
        return false;
    }
    lc_cpython_source fresh;
    if (!lc_cpython_source_open(&fresh, &agent->reader, &why_not)) {
        PyErr_SetString(PyExc_RuntimeError, why_not);
        return false;
    }
    /* Put there in one go, not made there: a thread without the GIL may be naming, by the last engine's
     * source, what it has just ended; functions and reader are where they were. */
    memcpy(&agent->source, &fresh, sizeof fresh);
    agent->source.deaths = lc_code_deaths_watch();
    int error = lc_flight_create(&agent->flight, path);
    if (error == 0) {
        lc_patches_open(path);
        error = lc_watchdog_open(&agent->watchdog, &agent->flight, &agent->source.source, settings,
                                 checkpoint_path);
    }
    if (error != 0) {
        errno = error;
        PyErr_SetFromErrnoWithFilename(PyExc_OSError, path);
        return false;
    }
    lc_courier_open(&agent->courier, &agent->flight);
    agent->watchdog.courier = &agent->courier;
    agent->watchdog.run_errand = lc_errand_run;
    return true;
}

uint64_t lc_deadline_after(double seconds)
{
    return seconds < 0 ? LC_NO_DEADLINE : lc_now_ns() + (uint64_t)(seconds < 1e9 ? seconds * 1e9 : 1e18);
}

bool lc_agent_start(const char *path, const char *checkpoint_path, const char *facts, Py_ssize_t facts_bytes,
                    const lc_watchdog_settings *settings, uint64_t threshold_ns, uint64_t sample_delay_ns,
                    lc_taker taker)
{
    lc_agent *agent = &lc_the_agent;
    if (agent->running) {
        PyErr_SetString(PyExc_RuntimeError, "the native engine runs already");
        return false;
    }
    if (!threads_are_over(agent)) {
        PyErr_SetString(PyExc_RuntimeError, still_there);
        return false;
    }
    if (agent->flight.base != NULL) {
        give_back(agent, false); /* its watchdog ended after all */
    }
    if (!prepare_for_forks()) {
        return false;
    }
    agent->threshold_ns = threshold_ns;
    agent->sample_delay_ns = sample_delay_ns;
    if (!open_parts(agent, path, checkpoint_path, settings)) {
        give_back(agent, false);
        return false;
    }
    LC_STORE(agent->flight.header->takes, taker);
    if (!lc_flight_set_facts(&agent->flight, facts, (size_t)facts_bytes)) {
        PyErr_Format(PyExc_ValueError, "session facts of %zd bytes are over the %u that fit", facts_bytes,
                     LC_FACTS_BYTES);
        give_back(agent, false);
        return false;
    }
    const int error = lc_watchdog_start(&agent->watchdog);
    if (error != 0) {
        (void)lc_os_error(error);
        give_back(agent, false);
        return false;
    }
    agent->generation++;
    agent->running = true;
    lc_answers_begin();
    lc_kill_signals_begin(&agent->watchdog, settings->signals, (const void *)(uintptr_t)PyOS_setsig);
    return true;
}

void lc_agent_stop(bool process_ends, uint64_t deadline_ns)
{
    lc_agent *agent = &lc_the_agent;
    if (!agent->running) {
        (void)lc_kill_signals_end(); /* a forked child has its parent's */
        return;
    }
    /* Not yet "not running": the last look completes what threads have just ended. */
    const uint64_t generation = agent->generation;
    do {
        end_threads(agent, deadline_ns);
        if (!agent->running || agent->generation != generation) {
            return; /* another thread was faster */
        }
        /* a fork was over meanwhile, and has started it again */
    } while (lc_life_is(&agent->watchdog.life, LC_LIFE_RUNS));
    lc_answers_end();
    agent->flight.is_stored_to |= !lc_kill_signals_end();
    agent->running = false;
    agent->generation++;
    Py_CLEAR(agent->scene_variable);
    if (threads_are_over(agent)) {
        give_back(agent, process_ends);
    } else if (process_ends) {
        lc_flight_say(&agent->flight, LC_PROCESS_ENDED);
    }
    lc_quiet_threads_arrive();
}

void lc_agent_forget_after_fork(void)
{
    lc_agent *agent = &lc_the_agent;
    Py_CLEAR(agent->on_first_lane);
    Py_CLEAR(agent->on_take_over);
    let_go_in_child(); /* also where the child was made by something that knows no fork handlers */
    Py_CLEAR(agent->scene_variable);
    if (agent->flight.base != NULL) {
        give_back(agent, false);
    }
}

const char *lc_agent_obstacle(void)
{
    lc_memory_reader reader;
    lc_cpython_source source;
    const char *why_not = NULL;
    if (lc_the_agent.running) {
        return NULL;
    }
    if (!threads_are_over(&lc_the_agent)) {
        return still_there;
    }
    if (lc_memory_reader_open(&reader, getpid()) == LC_READER_NONE) {
        return no_reader;
    }
    if (lc_cpython_source_open(&source, &reader, &why_not)) {
        lc_cpython_source_close(&source);
        why_not = NULL;
    }
    lc_memory_reader_close(&reader);
    return why_not;
}

static int count_threads(const lc_agent *agent)
{
    return !lc_life_is(&agent->watchdog.life, LC_LIFE_OVER) +
           !lc_life_is(&agent->courier.life, LC_LIFE_OVER) + lc_quiet_calls();
}

int lc_agent_pause(uint64_t deadline_ns)
{
    const int before = count_threads(&lc_the_agent);
    if (lc_the_agent.running) {
        end_threads(&lc_the_agent, deadline_ns);
    }
    lc_quiet_calls_end(deadline_ns);
    return before - count_threads(&lc_the_agent);
}

bool lc_agent_resume(void)
{
    lc_agent *agent = &lc_the_agent;
    if (!agent->running) {
        return true;
    }
    const int error = lc_watchdog_start(&agent->watchdog);
    if (error != 0) {
        (void)lc_os_error(error);
        return false;
    }
    if (lc_courier_is_owed(&agent->courier)) {
        (void)lc_courier_ask(&agent->courier);
    }
    return true;
}

static uint64_t lanes_given(void)
{
    return lc_the_agent.running ? LC_ACQUIRE(lc_the_agent.flight.header->sections[LC_SECTION_LANES].used)
                                : 0u;
}

uint64_t lc_agent_lanes_used(void)
{
    const lc_flight *flight = &lc_the_agent.flight;
    uint64_t used = 0;
    const uint64_t given = lanes_given();
    for (uint64_t i = 0; i < given; i++) {
        const lc_lane *lane = lc_flight_lane(flight, i);
        used += LC_LOAD(lane->turns) > 0 || LC_LOAD(lane->generation) > 1u || lc_lane_in_turn(lane);
    }
    return used;
}

uint64_t lc_agent_stalls(void)
{
    const lc_flight *flight = &lc_the_agent.flight;
    uint64_t stalls = 0;
    const uint64_t given = lanes_given();
    for (uint64_t i = 0; i < given; i++) {
        const lc_lane *lane = lc_flight_lane(flight, i);
        const uint64_t seen = LC_LOAD(lane->ended_seen), ended = LC_LOAD(lane->ended_count);
        stalls += ended > seen ? ended - seen : 0u;
    }
    /* After the lanes: a record that is dealt with meanwhile counts twice, not never. */
    return stalls + (lc_the_agent.running ? LC_LOAD(flight->counters[LC_COUNTER_stalls_recorded]) : 0u);
}

PyObject *lc_stalls_ended(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return PyLong_FromUnsignedLongLong(lc_agent_stalls());
}

PyObject *lc_spare_addresses_py(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return PyLong_FromUnsignedLongLong(lc_spare_addresses());
}

void lc_agent_tell(void)
{
    if (lc_storing_begin(lc_the_agent.generation) && lc_the_agent.running) {
        lc_bell_ring(&lc_the_agent.watchdog.news);
        lc_watchdog_call_keeper(&lc_the_agent.watchdog);
    }
    lc_storing_end();
}

int lc_agent_lend_flight(void)
{
    const lc_kept_file *file = &lc_the_agent.flight.file;
    char path[32];
    size_t i = 0;
    while (i < LENT_MAX && lc_kept_file_is_ours(&lc_the_agent.lent[i])) {
        i++;
    }
    if (!lc_the_agent.running || i == LENT_MAX || !lc_kept_file_is_ours(file)) {
        errno = i == LENT_MAX ? EMFILE : EBADF; /* or the program has closed it */
        return -1;
    }
    /* Opened anew: a copy would hold the file's lock beyond the engine's end. Where the program has become
     * another user it may only be copied. */
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", file->fd);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const bool is_taken =
        lc_kept_file_take(&lc_the_agent.lent[i], fd >= 0 ? fd : fcntl(file->fd, F_DUPFD_CLOEXEC, file->fd));
    return is_taken ? lc_the_agent.lent[i].fd : -1;
}

int lc_agent_ring_keeper(uint64_t deadline_ns)
{
    lc_agent *agent = &lc_the_agent;
    int outcome = ESRCH;
    if (!agent->running) {
        return outcome;
    }
    const uint64_t generation = agent->generation;
    const lc_courier_wish wish = lc_courier_ask(&agent->courier);
    Py_BEGIN_ALLOW_THREADS
    if (lc_storing_begin(generation)) { /* the pages stay */
        outcome = lc_courier_wait(&agent->courier, &wish, deadline_ns);
    }
    lc_storing_end();
    Py_END_ALLOW_THREADS
    return outcome;
}

bool lc_agent_end_with_keeper(uint64_t deadline_ns)
{
    lc_agent *agent = &lc_the_agent;
    bool is_stored = false;
    if (!agent->running || LC_LOAD(agent->flight.header->takes) != LC_TAKES_KEEPER) {
        return false;
    }
    const uint64_t generation = agent->generation;
    end_watchdog(agent, deadline_ns);
    if (!LC_AGENT_RUNS(generation)) {
        return false; /* another thread has stopped it */
    }
    lc_flight_say(&agent->flight, LC_PROCESS_ENDED);
    const lc_courier_wish wish = lc_courier_ask(&agent->courier);
    Py_BEGIN_ALLOW_THREADS
    if (lc_storing_begin(generation)) {
        is_stored = lc_courier_see_off(&agent->courier, &wish, deadline_ns);
    }
    lc_storing_end();
    Py_END_ALLOW_THREADS
    return is_stored;
}
