#include "core/watchdog/watch_state.h"

#include <string.h>

enum { VIEWS_KEPT = 8, WHOLE_EVERY = 16 };

/* Once a thread. One that is no more, or a kernel that does not tell, is no refusal. */
static void count_refusal(lc_watchdog *w, lc_lane_watch *watch)
{
    const int error = watch->view.error;
    const bool has_no_descriptor = error == EMFILE || error == ENFILE;
    if ((has_no_descriptor || error == EACCES || error == EPERM) && watch->blind_tid != watch->view.tid) {
        watch->blind_tid = watch->view.tid;
        lc_flight_count(w->flight,
                        has_no_descriptor ? LC_COUNTER_calls_no_descriptor : LC_COUNTER_calls_refused, 1);
    }
}

static void open_view(lc_watchdog *w, const lc_lane *lane, lc_lane_watch *watch)
{
    const uint64_t tid = LC_LOAD(lane->tid);
    if (watch->view.tid == tid) {
        return;
    }
    /* A few threads stall again and again; many at once must not use up the program's descriptors. */
    for (uint64_t i = 0; i < LC_WATCH_COUNT && w->views_open >= VIEWS_KEPT; i++) {
        if (&w->watches[i] != watch) {
            lc_stall_watch_close_view(w, i);
        }
    }
    lc_stall_watch_close_view(w, (uint64_t)(watch - w->watches));
    lc_thread_view_open(&watch->view, tid);
    w->views_open++;
    count_refusal(w, watch);
}

void lc_sampler_prepare(lc_watchdog *w, const lc_lane *lane, lc_lane_watch *watch)
{
    if (w->views_open < VIEWS_KEPT) {
        open_view(w, lane, watch);
    }
}

/* Context switches cost more to read than all else, so they are read now and then and carried on. */
static void put_switches(lc_sample_entry *sample, lc_lane_watch *watch, const lc_thread_reading *reading)
{
    if (reading->switches.voluntary != 0 || reading->switches.involuntary != 0) {
        watch->switches = reading->switches;
    }
    sample->voluntary_switches = watch->switches.voluntary;
    sample->involuntary_switches = watch->switches.involuntary;
}

static void put_kernel_view(lc_sample_entry *sample, const lc_thread_reading *reading)
{
    sample->on_cpu_ns = reading->sched.on_cpu_ns;
    sample->run_queue_ns = reading->sched.run_queue_ns;
    sample->major_faults = reading->stat.major_faults;
    sample->thread_state = (uint8_t)reading->stat.state;
    sample->syscall = reading->syscall.number;
    memcpy(sample->syscall_args, reading->syscall.args, sizeof sample->syscall_args);
    if (!reading->complete) {
        sample->flags |= LC_SAMPLE_NO_KERNEL_VIEW;
    }
}

static bool sleeps_on_gil(const lc_gil_view *gil, const lc_syscall_fields *call)
{
    return call->number == SYS_futex && lc_sleeps_on_gil(gil, call->args[0]);
}

static bool this_thread_collects(const lc_watchdog *w, const lc_lane *lane)
{
    const lc_header *header = w->flight->header;
    return (LC_ACQUIRE(header->gc_epoch) & 1u) && LC_LOAD(header->gc_tid) == LC_LOAD(lane->tid);
}

static void drop_sample(lc_watchdog *w, lc_word *in_slot, lc_counter counter)
{
    LC_ADD(*in_slot, 1u);
    lc_flight_count(w->flight, counter, 1);
}

/* A callback's sample must lie in that callback; a turn's in that turn. */
static bool still_the_same(const lc_lane *lane, const lc_slot *slot, uint64_t turn, uint64_t epoch)
{
    atomic_thread_fence(memory_order_acquire);
    if (LC_LOAD(lane->turn_epoch) != turn || LC_LOAD(slot->turn_epoch) != turn) {
        return false;
    }
    return LC_LOAD(slot->kind) == LC_ENDED_TURN ||
           (LC_LOAD(lane->epoch) == epoch && LC_LOAD(slot->epoch) == epoch);
}

/* It may have ended before the drain can ask for it. */
static void put_thread_name(lc_watchdog *w, lc_slot_writer *writer, uint64_t thread_state, uint64_t tid)
{
    if (lc_slot_wants_thread_name(writer, tid)) {
        lc_slot_put_thread_name(writer, tid, w->source->thread_name(w->source, thread_state, tid));
    }
}

static void put_circle(lc_watchdog *w, lc_lock_circle *circle, lc_slot_writer *writer)
{
    lc_lock_circle_put(circle, w->source, writer, w->holder_stack);
    for (uint32_t i = 0; i < circle->closed; i++) {
        put_thread_name(w, writer, circle->links[i].thread_state, circle->links[i].tid);
    }
}

/* `holder`: thread state of the thread whose stack belongs to the sample too, 0 none. It is read when the
 * first stack is stored: a walk may put other code in the place of code that the walk before it has named. */
static void store(lc_watchdog *w, lc_lane_watch *watch, lc_sample_entry *sample, bool has_stack,
                  uint64_t holder)
{
    lc_slot_writer *writer = watch->writer;
    lc_slot *slot = writer->slot;
    if (LC_LOAD(slot->sample_count) == LC_SAMPLE_MAX) {
        lc_slot_thin_samples(writer);
        LC_STORE(slot->interval_ns, 2u * LC_LOAD(slot->interval_ns));
    }
    if (has_stack) {
        sample->stack = lc_slot_put_stack(writer, w->stack);
        if (sample->stack == LC_NO_REF) {
            drop_sample(w, &slot->samples_dropped_full, LC_COUNTER_samples_dropped_full);
            return;
        }
        if (w->stack->truncated) {
            lc_flight_count(w->flight, LC_COUNTER_frames_truncated, 1);
        }
    }
    if (holder != 0 && w->source->walk(w->source, holder, w->holder_stack) == LC_WALK_OK) {
        sample->holder_stack = lc_slot_put_stack(writer, w->holder_stack);
    }
    if (holder != 0) {
        put_thread_name(w, writer, holder, sample->holder_tid);
    }
    if (sample->flags & LC_SAMPLE_IN_CIRCLE) {
        put_circle(w, &watch->wait.circle, writer);
    }
    lc_slot_put_sample(writer, sample);
    lc_flight_count(w->flight, LC_COUNTER_samples_taken, 1);
}

static void count_cost(lc_watchdog *w, uint64_t from_ns)
{
    const uint64_t took = lc_now_ns() - from_ns;
    lc_flight_count(w->flight, LC_COUNTER_sample_ns_total, took);
    lc_word *max = &w->flight->counters[LC_COUNTER_sample_ns_max];
    if (took > LC_LOAD(*max)) {
        LC_STORE(*max, took);
    }
}

/* Where the callback of this epoch is, if it has said so. */
static void read_scene(lc_watchdog *w, const lc_lane *lane, lc_slot_writer *writer, uint64_t epoch)
{
    const uint64_t scene = LC_LOAD(lane->scene);
    if (scene == 0) {
        return;
    }
    const lc_ref text = lc_slot_put_text(writer, w->source->text(w->source, scene));
    atomic_thread_fence(memory_order_acquire);
    if (LC_LOAD(lane->epoch) == epoch) {
        writer->slot->scene = text;
    }
}

/* Names of the running work and scene, once they are needed; kept only if the epoch did not move. `stack`
 * (or NULL) is of this epoch. */
static void read_names(lc_watchdog *w, const lc_lane *lane, lc_lane_watch *watch, const lc_stack *stack,
                       uint64_t epoch)
{
    lc_slot_writer *writer = watch->writer;
    lc_slot *slot = writer->slot;
    lc_work_names names = {{NULL, 0}, {NULL, 0}};
    const uint64_t work = LC_LOAD(lane->work);
    if (work != 0) {
        w->source->work(w->source, work, LC_LOAD(lane->thread_state), stack, &names);
        const lc_ref callback = lc_slot_put_text(writer, names.callback);
        const lc_ref task = lc_slot_put_text(writer, names.task);
        atomic_thread_fence(memory_order_acquire);
        if (LC_LOAD(lane->epoch) != epoch) {
            return; /* read of work that was over: the texts stay in the heap, unused */
        }
        slot->callback = callback;
        slot->task = task;
    }
    read_scene(w, lane, writer, epoch);
    atomic_thread_fence(memory_order_release);
    slot->work_read_ns = lc_now_ns();
}

void lc_sampler_take(lc_watchdog *w, const lc_lane *lane, lc_lane_watch *watch, uint64_t now_ns)
{
    lc_slot *slot = watch->writer->slot;
    lc_frame_source *source = w->source;
    const uint64_t thread_state = LC_LOAD(lane->thread_state);
    lc_sample_entry sample = {.at_ns = lc_now_ns()};
    lc_gil_view gil = {0};
    lc_thread_reading reading;
    const uint64_t turn = LC_ACQUIRE(lane->turn_epoch);
    const uint64_t epoch = LC_ACQUIRE(lane->epoch);
    /* The frames first: whatever else is read may take its time. */
    const lc_walk_result walked = source->walk(source, thread_state, w->stack);
    source->gil(source, thread_state, &gil);
    open_view(w, lane, watch);
    const bool whole = LC_LOAD(slot->sample_count) % WHOLE_EVERY == 0;
    lc_thread_view_read(&watch->view, w->stack->still_cpu_ns, whole, &reading);
    const bool in_gc = this_thread_collects(w, lane);
    if (!still_the_same(lane, slot, turn, epoch)) {
        drop_sample(w, &slot->samples_dropped_moved, LC_COUNTER_samples_dropped_moved);
        return;
    }
    if (walked == LC_WALK_MOVED || walked == LC_WALK_UNREADABLE) {
        drop_sample(w, &slot->samples_dropped_unreadable, LC_COUNTER_samples_dropped_unreadable);
    }
    put_kernel_view(&sample, &reading);
    put_switches(&sample, watch, &reading);
    sample.epoch = LC_LOAD(lane->epoch) == epoch ? epoch : 0;
    sample.gil = (uint8_t)gil.state;
    sample.gc_total_ns = LC_LOAD(w->flight->header->gc_total_ns);
    sample.flags |= in_gc ? LC_SAMPLE_GC : 0;
    sample.flags |= walked == LC_WALK_OK && w->stack->came_and_went ? LC_SAMPLE_CALLS_PYTHON : 0;
    uint64_t holder = 0;
    const bool waits = sleeps_on_gil(&gil, &reading.syscall);
    /* Also where no thread has it this instant: between one holder and the next it is free. */
    sample.flags |= waits ? LC_SAMPLE_WAITS_FOR_GIL : 0;
    if (gil.state == LC_GIL_HELD_BY_OTHER) {
        sample.holder_tid = gil.holder_tid;
        /* Where the kernel does not tell what the thread sleeps on, the holder is kept all the same. */
        if (waits || reading.syscall.number == LC_SYSCALL_UNKNOWN) {
            holder = gil.holder_thread_state;
        }
    }
    if (!waits) {
        const uint64_t of_lock = lc_wait_view_put(&watch->wait, &w->reader, source, &watch->view, &reading,
                                                  thread_state, watch->writer, &sample);
        holder = sample.lock_kind != LC_LOCK_NONE ? of_lock : holder;
    }
    if (slot->work_read_ns == 0 && (epoch & 1u)) {
        read_names(w, lane, watch, walked == LC_WALK_OK ? w->stack : NULL, epoch);
    } else if (slot->work_read_ns != 0 && (slot->scene.bytes == 0 || watch->scene_epoch != epoch)) {
        /* A route may be found long after its request has begun; and the first look may have met the one
         * of a mount, on the way to it, and so do later ones while the thread waits for the GIL. */
        read_scene(w, lane, watch->writer, epoch);
        watch->scene_epoch = waits ? 0u : epoch;
    }
    store(w, watch, &sample, walked == LC_WALK_OK, holder);
    count_cost(w, now_ns);
}

void lc_sampler_take_threads(lc_watchdog *w, const lc_lane *lane, lc_lane_watch *watch)
{
    lc_frame_source *source = w->source;
    lc_thread_ref threads[LC_SLOT_THREADS_MAX];
    const uint64_t own = LC_LOAD(lane->thread_state);
    lc_gil_view gil = {0};
    const uint32_t count = source->threads(source, own, threads, LC_SLOT_THREADS_MAX);
    source->gil(source, own, &gil);
    for (uint32_t i = 0; i < count; i++) {
        lc_thread_entry entry = {.tid = threads[i].tid, .at_ns = lc_now_ns()};
        if (source->walk(source, threads[i].thread_state, w->stack) == LC_WALK_OK) {
            entry.stack = lc_slot_put_stack(watch->writer, w->stack);
        }
        entry.thread_state = (uint8_t)lc_thread_state_letter(threads[i].tid);
        entry.holds_gil = gil.holder_thread_state == threads[i].thread_state;
        const lc_syscall_fields call = lc_thread_call(threads[i].tid);
        entry.waits_for_gil = !entry.holds_gil && sleeps_on_gil(&gil, &call);
        lc_slot_put_thread(watch->writer, &entry);
        put_thread_name(w, watch->writer, threads[i].thread_state, threads[i].tid);
    }
}
