#include "core/host/host_watch.h"

#include "core/host/thread_view.h"
#include "core/lane/lane.h"

enum { YOUNG_NS = 100 * 1000 * 1000, EVERY_NS = 1000 * 1000 * 1000 };

/* With what holds for the stalled thread alone. */
static void put(lc_slot_writer *writer, const lc_host_entry *reading)
{
    lc_host_entry entry = *reading;
    lc_thread_priority(writer->slot->tid, &entry);
    lc_slot_put_host(writer, &entry);
}

static void read_into(lc_host_view *view, lc_slot_writer *writer)
{
    lc_host_entry now;
    lc_host_view_read(view, &now);
    put(writer, &now);
}

void lc_host_watch_during(lc_host_view *view, lc_slot_writer *writer, uint64_t now_ns)
{
    const lc_slot *slot = writer->slot;
    const uint64_t count = LC_LOAD(slot->host_count);
    if (count == 0) {
        writer->host_interval_ns = EVERY_NS;
        if (view->last.at_ns != 0 && now_ns < view->last.at_ns + YOUNG_NS) {
            put(writer, &view->last);
        } else {
            read_into(view, writer);
        }
    } else if (now_ns >= slot->hosts[count - 1u].at_ns + writer->host_interval_ns) {
        read_into(view, writer);
    }
}

void lc_host_watch_at_end(lc_host_view *view, lc_slot_writer *writer, uint64_t begin_ns)
{
    /* A stall that was never seen while it lasted: what was read shortly before it is its first reading. */
    if (LC_LOAD(writer->slot->host_count) == 0 && view->last.at_ns != 0 && view->last.at_ns + EVERY_NS > begin_ns) {
        put(writer, &view->last);
    }
    read_into(view, writer);
}
