#include "cpython/tasks/look.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "core/lane/lane.h"
#include "cpython/names/work.h"
#include "cpython/objects/objects.h"
#include "cpython/walker/frame_values.h"
#include "cpython/walker/walker.h"

enum { TASKS_EACH = 128, CIRCLES_MAX = 8, LEAST_MEMBERS = 2, GIVEN_NAME_MAX = 32, TYPE_NAME_MAX = 64 };

/* ---- one task ------------------------------------------------------------------------------------------- */

static bool is_lock_acquire(lc_cpython_source *source, uint64_t code)
{
    lc_frame_shape shape;
    const lc_raw_frame frame = {.code = code};
    return lc_frame_shape_read(source, &frame, &shape) && lc_str_is(source, shape.qualname, "Lock.acquire") &&
           lc_str_ends(source, shape.filename, "/asyncio/locks.py");
}

static bool acquires(lc_task_look *look, uint64_t code)
{
    const uint64_t place = (code >> 4) % LC_LOOK_CODES;
    if (look->codes[place].code != code) {
        look->codes[place].code = code;
        look->codes[place].acquires = is_lock_acquire(&look->source, code);
    }
    return look->codes[place].acquires;
}

/* The lock, or what may be a task, that it waits for; 0: neither. */
static uint64_t waits_for(lc_task_look *look, const lc_task *task)
{
    if (task->state != LC_TASK_SUSPENDED || task->future == 0 || task->count == 0 || task->cut) {
        return 0;
    }
    const lc_await *inner = &task->awaits[task->count - 1u];
    return acquires(look, inner->code) ? inner->first : task->future;
}

static void note_held(lc_task_look *look, const lc_await *await, uint64_t wanted, uint32_t number)
{
    for (uint32_t i = 0; i < await->held_count; i++) {
        const uint64_t object = await->held[i].object;
        if (object != wanted && look->held_count < LC_LOOK_HELD_TASKS_MAX) {
            look->held[look->held_count++] = (lc_pair){object, number};
        }
    }
}

static void read_task(lc_task_look *look, uint32_t number)
{
    lc_task *task = &look->task;
    lc_task_note *note = &look->notes[number];
    lc_task_read(&look->source, &look->tasks, look->found[number].key, LC_AWAITS_MAX, task);
    uint64_t place = lc_mix(task->state, task->count), self = task->future;
    const uint64_t wanted = waits_for(look, task);
    for (uint32_t i = 0; i < task->count; i++) {
        const lc_await *await = &task->awaits[i];
        place = lc_mix(lc_mix(place, await->code), await->instr);
        self = lc_mix(self, await->first);
        note_held(look, await, wanted, number);
    }
    *note = (lc_task_note){.task = look->found[number].key, .place = place, .self = lc_mix(self, place)};
    look->found[number].value = wanted;
}

/* ---- all of them ---------------------------------------------------------------------------------------- */

static void begin(lc_task_look *look, const lc_cpython_source *source, uint64_t now_ns)
{
    memcpy(&look->source, source, sizeof look->source);
    lc_page_cache_open(&look->cache, source->reader);
    look->source.reader = &look->cache.reader;
    memset(look->codes, 0, sizeof look->codes);
    look->began_ns = now_ns;
    look->count = look->done = look->held_count = 0;
    lc_tasks_find(&look->source, source->at.interp, &look->tasks);
    if (look->tasks.type != 0) {
        const uint32_t threads =
            lc_threads_of(&look->source, source->at.interp, look->threads, LC_LOOK_THREADS_MAX);
        look->count = lc_tasks_list(&look->source, &look->tasks, source->at.interp, look->threads, threads,
                                    look->found, LC_LOOK_TASKS_MAX, &look->others);
        lc_tasks_learn(&look->source, &look->tasks, look->found, look->count);
    }
}

/* Both lists are sorted by task. */
static void compare_with_before(lc_task_look *look)
{
    for (uint32_t i = 0, k = 0; i < look->count; i++) {
        lc_task_note *note = &look->notes[i];
        while (k < look->before_count && look->before[k].task < note->task) {
            k++;
        }
        const bool is_same = k < look->before_count && look->before[k].task == note->task &&
                             look->before[k].self == note->self;
        note->since_ns = is_same ? look->before[k].since_ns : look->began_ns;
    }
}

/* The number of the first pair with this key, from 1; 0: there is none. */
static uint32_t place_of(const lc_pair *all, uint32_t count, uint64_t key)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2u;
        if (all[middle].key < key) {
            low = middle + 1u;
        } else {
            high = middle;
        }
    }
    return low < count && all[low].key == key ? low + 1u : 0u;
}

static void find_next(lc_task_look *look)
{
    lc_pairs_sort(look->held, look->held_count);
    for (uint32_t i = 0; i < look->count; i++) {
        const uint64_t wanted = look->found[i].value;
        const uint32_t task = wanted == 0 ? 0 : place_of(look->found, look->count, wanted);
        const uint32_t held = wanted == 0 || task != 0 ? 0 : place_of(look->held, look->held_count, wanted);
        look->next[i] = held != 0 ? (uint32_t)look->held[held - 1u].value + 1u : task;
        look->walk[i] = 0;
    }
}

/* Whether all have waited like this since a look before; *hash tells this circle from others. */
static bool has_stood_still(const lc_task_look *look, uint32_t member, uint64_t *hash)
{
    uint32_t at = member, members = 0;
    bool stands = true;
    *hash = 0;
    do {
        stands &= look->notes[at].since_ns < look->began_ns;
        *hash ^= lc_mix(look->notes[at].self, look->notes[at].task);
        members++;
        at = look->next[at] - 1u;
    } while (at != member);
    return stands && members >= LEAST_MEMBERS;
}

static bool is_new(lc_task_look *look, uint64_t hash)
{
    for (uint32_t i = 0; i < LC_LOOK_TOLD; i++) {
        if (look->told[i] == hash) {
            return false;
        }
    }
    look->told[look->told_count++ % LC_LOOK_TOLD] = hash;
    return true;
}

/* A member of each circle that has stood still. A walk that meets itself has found one. */
static uint32_t find_circles(lc_task_look *look, uint32_t members[CIRCLES_MAX], bool *found)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < look->count && count < CIRCLES_MAX; i++) {
        uint32_t at = i;
        while (look->walk[at] == 0 && look->next[at] != 0) {
            look->walk[at] = i + 1u;
            at = look->next[at] - 1u;
        }
        uint64_t hash;
        if (look->walk[at] == i + 1u && look->next[at] != 0 && has_stood_still(look, at, &hash)) {
            members[count++] = at;
            *found |= is_new(look, hash);
        }
        look->walk[at] = look->walk[at] == 0 ? i + 1u : look->walk[at];
    }
    return count;
}

/* ---- what is written ------------------------------------------------------------------------------------ */

typedef struct {
    lc_task_look *look;
    lc_slot_writer *into;
    lc_look *out;
    uint32_t count;
} writing;

static lc_ref put_text(writing *w, uint64_t str)
{
    return lc_slot_put_text(w->into, str == 0 ? (lc_text){0} : lc_text_of(&w->look->source, str));
}

static lc_ref put_type(writing *w, uint64_t object)
{
    char name[TYPE_NAME_MAX];
    const lc_cpython_source *source = &w->look->source;
    const uint64_t type = lc_type_at(source, object);
    const uint64_t at = type == 0 ? 0 : lc_word_at(source, type + source->layout.type_name);
    return lc_slot_put_text(w->into,
                            (lc_text){name, at == 0 ? 0 : lc_read_c_string(source, at, name, sizeof name)});
}

static lc_ref put_callback(writing *w, uint64_t callback)
{
    return put_text(w, lc_callback_name(&w->look->source, callback));
}

static lc_ref put_name(writing *w, uint64_t name)
{
    char given[GIVEN_NAME_MAX];
    uint64_t number;
    if (!lc_read_int(&w->look->source, name, &number)) {
        return put_text(w, name);
    }
    const int length = snprintf(given, sizeof given, "Task-%llu", (unsigned long long)number);
    return lc_slot_put_text(w->into, (lc_text){given, (uint32_t)length});
}

static bool put_await(writing *w, const lc_await *await, lc_look_await *out)
{
    lc_place place;
    lc_look_held held[LC_HELD_MAX];
    *out = (lc_look_await){.first = await->first, .held_count = await->held_count};
    if (!lc_place_read(&w->look->source, await->code, await->instr, &place)) {
        return false;
    }
    const lc_code_facts code = {.serial = await->code,
                                .filename = {place.file, place.file_length},
                                .qualname = {place.qualname, place.qualname_length},
                                .first_line = place.first_line,
                                .code_flags = place.flags};
    out->frame = (lc_frame_entry){.code = lc_slot_put_code(w->into, &code),
                                  .line = place.position.line,
                                  .end_line = place.position.end_line,
                                  .column = (uint16_t)place.position.column,
                                  .end_column = (uint16_t)place.position.end_column};
    for (uint32_t i = 0; i < await->held_count; i++) {
        held[i] = (lc_look_held){await->held[i].object, put_text(w, await->held[i].function)};
    }
    out->held = await->held_count == 0
                    ? LC_NO_REF
                    : lc_slot_append(w->into->slot, held, await->held_count * sizeof *held);
    return out->frame.code != LC_NO_REF && (await->held_count == 0 || out->held != LC_NO_REF);
}

/* The outer awaits of a very long chain are left out. */
static bool put_awaits(writing *w, const lc_task *task, lc_look_entry *entry)
{
    enum { MOST = 64 };
    lc_look_await awaits[MOST];
    const uint32_t first = task->count > MOST ? task->count - MOST : 0;
    for (uint32_t i = first; i < task->count; i++) {
        if (!put_await(w, &task->awaits[i], &awaits[i - first])) {
            return false;
        }
    }
    entry->await_count = (uint16_t)(task->count - first);
    entry->cut = task->cut || first > 0;
    entry->awaits = entry->await_count == 0
                        ? LC_NO_REF
                        : lc_slot_append(w->into->slot, awaits, entry->await_count * sizeof *awaits);
    return entry->await_count == 0 || entry->awaits != LC_NO_REF;
}

/* Each task once; `count`: how many wait where it does. */
static void put_task(writing *w, uint32_t number, uint32_t count, uint32_t circle)
{
    lc_task_look *look = w->look;
    lc_task *task = &look->task;
    if (w->count == LC_LOOK_ENTRIES_MAX) {
        return;
    }
    for (uint32_t i = 0; i < w->count; i++) {
        if (w->out->entries[i].task == look->found[number].key) {
            return;
        }
    }
    lc_task_read(&look->source, &look->tasks, look->found[number].key, LC_AWAITS_MAX, task);
    lc_look_entry entry = {
        .task = look->found[number].key,
        .loop = task->loop,
        .future = task->future,
        .since_ns = look->notes[number].since_ns,
        .count = count,
        .circle = circle,
        .state = (uint8_t)task->state,
        .name = put_name(w, task->name),
        .loop_type = put_type(w, task->loop),
        .callback = put_callback(w, task->callback),
        .future_type = put_type(w, task->future),
        .future_callback = put_callback(w, lc_future_callback(&look->source, task->future)),
        .end_type = put_type(w, task->end),
    };
    if (put_awaits(w, task, &entry)) {
        w->out->entries[w->count++] = entry;
        LC_RELEASE(w->out->entry_count, w->count);
    }
}

static void put_circles(writing *w, const uint32_t *members, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = members[i];
        do {
            put_task(w, at, 1, i + 1u);
            at = w->look->next[at] - 1u;
        } while (at != members[i]);
    }
}

typedef struct {
    uint32_t number, count;
} group;

/* Keeps the largest ones, in order. */
static uint32_t keep(group *largest, uint32_t kept, group one)
{
    uint32_t at = kept < LC_LOOK_ENTRIES_MAX ? kept : LC_LOOK_ENTRIES_MAX - 1u;
    if (kept == LC_LOOK_ENTRIES_MAX && largest[at].count >= one.count) {
        return kept;
    }
    for (; at > 0 && largest[at - 1u].count < one.count; at--) {
        largest[at] = largest[at - 1u];
    }
    largest[at] = one;
    return kept < LC_LOOK_ENTRIES_MAX ? kept + 1u : kept;
}

/* The largest groups of tasks that wait at the same places, and who holds what they wait for. */
static void put_groups(writing *w)
{
    lc_task_look *look = w->look;
    group largest[LC_LOOK_ENTRIES_MAX];
    uint32_t kept = 0;
    for (uint32_t i = 0; i < look->count; i++) {
        look->order[i] = (lc_pair){look->notes[i].place, i};
    }
    lc_pairs_sort(look->order, look->count);
    for (uint32_t i = 0, end; i < look->count; i = end) {
        for (end = i + 1u; end < look->count && look->order[end].key == look->order[i].key; end++) {
        }
        kept = keep(largest, kept, (group){(uint32_t)look->order[i].value, end - i});
        w->out->groups++;
    }
    for (uint32_t i = 0; i < kept; i++) {
        put_task(w, largest[i].number, largest[i].count, 0);
        if (look->next[largest[i].number] != 0) {
            put_task(w, look->next[largest[i].number] - 1u, 1, 0);
        }
    }
}

static bool write_look(lc_task_look *look, lc_slot_writer *into)
{
    static const lc_look nothing;
    uint32_t members[CIRCLES_MAX];
    bool found = false;
    const uint32_t at = lc_slot_append(into->slot, &nothing, sizeof nothing);
    writing w = {.look = look, .into = into, .out = (lc_look *)(void *)((char *)into->slot + at)};
    w.out->began_ns = look->began_ns;
    w.out->tasks = look->count;
    w.out->others = look->others;
    compare_with_before(look);
    find_next(look);
    const uint32_t circles = find_circles(look, members, &found);
    put_circles(&w, members, circles);
    LC_STORE(w.out->circles, circles);
    put_groups(&w);
    memcpy(look->before, look->notes, look->count * sizeof *look->notes);
    look->before_count = look->count;
    return found;
}

lc_look_result lc_look_at_tasks(lc_cpython_source *source, lc_slot_writer *into, uint64_t now_ns)
{
    lc_task_look *look = source->look;
    if (look->began_ns == 0) {
        begin(look, source, now_ns);
    }
    for (uint32_t i = 0; i < TASKS_EACH && look->done < look->count; i++) {
        read_task(look, look->done++);
    }
    if (look->done < look->count) {
        return LC_LOOK_GOES_ON;
    }
    const bool has_any = look->tasks.type != 0;
    const bool found = has_any && write_look(look, into);
    look->began_ns = 0;
    (void)madvise(look->cache.pages, sizeof look->cache.pages, MADV_DONTNEED);
    return !has_any ? LC_LOOK_NOTHING : found ? LC_LOOK_FOUND : LC_LOOK_IS_OVER;
}
