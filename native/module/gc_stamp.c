/* Stamps of garbage collections: a C function for `gc.callbacks`.
 *
 * gc_stamp(phase, info): as gc.callbacks calls it, on the collecting thread, under the GIL. */
#include "module/bindings.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "core/start/start.h"
#include "module/thread_lane.h"

static uint64_t number_in(PyObject *info, const char *key)
{
    PyObject *value = PyDict_Check(info) ? PyDict_GetItemString(info, key) : NULL; /* borrowed */
    const long number = value ? PyLong_AsLong(value) : 0;
    if (number == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return (uint64_t)number;
}

/* A watched thread's number is in its lane: a collection then makes no system call. */
static uint64_t own_tid(const lc_lane *lane)
{
    return lane != NULL ? LC_LOAD(lane->tid) : (uint64_t)syscall(SYS_gettid);
}

static void stamp_begin(lc_header *header, PyObject *info)
{
    LC_STORE(header->gc_begin, lc_now_ticks());
    LC_STORE(header->gc_generation, number_in(info, "generation"));
    LC_STORE(header->gc_tid, own_tid(lc_thread_lane_peek()));
    LC_RELEASE(header->gc_epoch, LC_LOAD(header->gc_epoch) | 1u);
}

/* Shorter ones count in the totals only. The youngest generation is collected every few hundred objects: one
   json.loads would push what explains its stall out of the ring. */
enum { LC_GC_KEPT_NS = 250 * 1000 };

static void keep(lc_flight *flight, uint64_t begin_ns, uint64_t end_ns, PyObject *info)
{
    lc_header *header = flight->header;
    lc_word *written = &header->sections[LC_SECTION_GC].used;
    const uint64_t sequence = LC_LOAD(*written) + 1u;
    lc_gc_entry *entry = &flight->collections[(sequence - 1u) % LC_GC_COUNT];
    LC_STORE(entry->sequence, 0);
    atomic_thread_fence(memory_order_release);
    entry->begin_ns = begin_ns;
    entry->end_ns = end_ns;
    entry->tid = LC_LOAD(header->gc_tid);
    entry->generation = LC_LOAD(header->gc_generation);
    entry->collected = number_in(info, "collected");
    entry->uncollectable = number_in(info, "uncollectable");
    LC_RELEASE(entry->sequence, sequence);
    LC_RELEASE(*written, sequence);
}

static void stamp_end(lc_flight *flight, PyObject *info)
{
    lc_header *header = flight->header;
    if (!(LC_LOAD(header->gc_epoch) & 1u)) {
        return; /* the engine was started in the middle of this one */
    }
    const uint64_t begin_ns = lc_flight_ns(flight, LC_LOAD(header->gc_begin));
    const uint64_t end_ns = lc_flight_ns(flight, lc_now_ticks());
    const uint64_t took_ns = end_ns > begin_ns ? end_ns - begin_ns : 0;
    if (took_ns >= LC_GC_KEPT_NS) {
        keep(flight, begin_ns, end_ns, info);
    }
    LC_ADD(header->gc_total_ns, took_ns);
    lc_lane *lane = lc_thread_lane_peek();
    if (lane != NULL) {
        LC_ADD(lane->gc_ns, took_ns);
    }
    lc_start_collected(took_ns);
    lc_flight_count(flight, LC_COUNTER_gc_collections, 1);
    LC_RELEASE(header->gc_epoch, LC_LOAD(header->gc_epoch) + 1u);
}

PyObject *lc_gc_stamp(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count == 2 && lc_the_agent.running && PyUnicode_Check(args[0])) {
        if (PyUnicode_CompareWithASCIIString(args[0], "start") == 0) {
            stamp_begin(lc_the_agent.flight.header, args[1]);
        } else {
            stamp_end(&lc_the_agent.flight, args[1]);
        }
    }
    Py_RETURN_NONE;
}
