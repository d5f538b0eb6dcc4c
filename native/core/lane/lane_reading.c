#include "core/lane/lane_reading.h"

#include <stdio.h>
#include <string.h>

enum { JUST_BEGUN_NS = 1000 * 1000, OLD_NS = 100 * 1000 * 1000 };

static void path_of(uint64_t tid, char *path, size_t room)
{
    snprintf(path, room, "/proc/self/task/%llu/schedstat", (unsigned long long)tid);
}

static bool open_file(lc_lane_readings *readings, uint64_t tid)
{
    char path[64];
    if (readings->tid == tid && readings->file.fd > 0) {
        return true;
    }
    lc_kept_file_close(&readings->file);
    if (readings->tid != tid) {
        memset(readings, 0, sizeof *readings);
        readings->tid = tid;
    }
    path_of(tid, path, sizeof path);
    return lc_kept_file_open(&readings->file, path);
}

static bool read_sched(const lc_kept_file *file, lc_schedstat_fields *out)
{
    char text[128];
    const size_t length = lc_kept_file_read(file, text, sizeof text);
    return length > 0 && lc_parse_schedstat(text, length, out);
}

bool lc_lane_readings_take(lc_lane_readings *readings, uint64_t tid, uint64_t turn_begin_ns,
                           uint64_t callback_begin_ns)
{
    lc_lane_reading now = {0};
    if (!open_file(readings, tid)) {
        return false;
    }
    if (readings->latest.at_ns <= turn_begin_ns) {
        readings->before_turn = readings->latest;
    }
    if (readings->latest.at_ns <= callback_begin_ns) {
        readings->before_callback = readings->latest;
    }
    now.at_ns = lc_now_ns();
    if (!read_sched(&readings->file, &now.sched)) {
        lc_kept_file_close(&readings->file);
        return false;
    }
    readings->latest = now;
    /* What was idle for long was perhaps idle as a loop only: work outside any bracket is none of the
     * turn's. */
    if (turn_begin_ns != 0 && now.at_ns < turn_begin_ns + JUST_BEGUN_NS &&
        readings->before_turn.at_ns + OLD_NS < turn_begin_ns) {
        readings->before_turn = now;
    }
    return true;
}

const lc_lane_reading *lc_lane_readings_before(const lc_lane_readings *readings, uint64_t begin_ns)
{
    const lc_lane_reading *const all[] = {&readings->latest, &readings->before_callback,
                                          &readings->before_turn};
    const lc_lane_reading *before = NULL;
    const lc_lane_reading *just_after = NULL;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const uint64_t at_ns = all[i]->at_ns;
        if (at_ns == 0 || at_ns >= begin_ns + JUST_BEGUN_NS) {
            continue;
        }
        if (at_ns > begin_ns) {
            just_after = all[i];
        } else if (before == NULL || at_ns > before->at_ns) {
            before = all[i];
        }
    }
    const bool is_old = before == NULL || before->at_ns + OLD_NS < begin_ns;
    return is_old && just_after != NULL ? just_after : before;
}

void lc_lane_readings_close(lc_lane_readings *readings) { lc_kept_file_close(&readings->file); }

void lc_lane_note_sched(lc_lane *lane)
{
    char path[64];
    lc_kept_file file = {0};
    lc_schedstat_fields sched;
    path_of(LC_LOAD(lane->tid), path, sizeof path);
    if (lc_kept_file_open(&file, path) && read_sched(&file, &sched)) {
        LC_STORE(lane->on_cpu_ns, sched.on_cpu_ns);
        LC_STORE(lane->run_queue_ns, sched.run_queue_ns);
    }
    lc_kept_file_close(&file);
}
