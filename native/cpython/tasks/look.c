#include "cpython/tasks/look.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "core/lane/lane.h"
#include "cpython/names/work.h"
#include "cpython/objects/objects.h"
#include "cpython/walker/frame_values.h"
#include "cpython/walker/walker.h"

enum {
    PART_NS = 1000000,
    CIRCLES_MAX = 8,
    LEAST_MEMBERS = 2,
    AWAITS_TOLD = 64,
    AWAITS_OF_CIRCLES = 8,
    GIVEN_NAME_MAX = 32,
    TYPE_NAME_MAX = 64
};

/* ---- one task ------------------------------------------------------------------------------------------- */

enum { ORDINARY, ACQUIRES, LETS_GO, TIMED, LEAVES_LOCK };

static const struct {
    const char *file, *function;
    uint32_t what;
} places[] = {
    {"asyncio/locks.py", "Lock.acquire", ACQUIRES},
    {"asyncio/locks.py", "Condition.wait", LETS_GO},
    {"asyncio/tasks.py", "wait_for", TIMED},
};

/* The code's part in a wait. */
static uint32_t code_is(lc_task_look *look, uint64_t code)
{
    lc_frame_shape shape;
    const lc_raw_frame frame = {.code = code};
    const uint64_t known = (code >> 4) % LC_LOOK_KNOWN;
    if (look->codes[known].at != code) {
        look->codes[known].at = code;
        look->codes[known].what = ORDINARY;
        const bool is_read = lc_frame_shape_read(&look->source, &frame, &shape);
        for (size_t i = 0; i < sizeof places / sizeof *places && is_read; i++) {
            if (lc_str_is(&look->source, shape.qualname, places[i].function) &&
                lc_str_ends(&look->source, shape.filename, places[i].file)) {
                look->codes[known].what = places[i].what;
            }
        }
    }
    return look->codes[known].what;
}

/* What a block's exit with this name leaves; 0 is the name of the exit of a condition's lock. */
static uint32_t exit_is(lc_task_look *look, uint64_t function)
{
    const uint64_t known = (function >> 4) % LC_LOOK_KNOWN;
    if (function == 0) {
        return LEAVES_LOCK;
    }
    if (look->exits[known].at != function) {
        const lc_cpython_source *source = &look->source;
        look->exits[known].at = function;
        look->exits[known].what = lc_str_is(source, function, LC_LOCK_EXIT) ? LEAVES_LOCK
                                  : lc_str_is(source, function, "Timeout.__aexit__") ||
                                          lc_str_is(source, function, "CancelScope.__exit__")
                                      ? TIMED
                                      : ORDINARY;
    }
    return look->exits[known].what;
}

/* The lock, or what may be a task, that it waits for; 0: neither. */
static uint64_t waits_for(lc_task_look *look, const lc_task *task)
{
    if (task->state != LC_TASK_SUSPENDED || task->future == 0 || task->count == 0 || task->cut) {
        return 0;
    }
    const lc_await *inner = &task->awaits[task->count - 1u];
    return code_is(look, inner->code) == ACQUIRES ? inner->first : task->future;
}

/* Locks that it holds are noted; one in `Condition.wait` has let one go, which may be any. */
static void note_blocks(lc_task_look *look, const lc_task *task, uint64_t wanted, uint32_t number)
{
    const uint32_t held_before = look->held_count;
    for (uint32_t i = 0; i < task->count; i++) {
        const lc_await *await = &task->awaits[i];
        const uint32_t place = code_is(look, await->code);
        look->notes[number].has_timeout |= place == TIMED;
        for (uint32_t k = 0; k < await->held_count; k++) {
            const uint32_t what = exit_is(look, await->held[k].function);
            look->notes[number].has_timeout |= what == TIMED;
            if (what == LEAVES_LOCK && await->held[k].object != wanted &&
                look->held_count < LC_LOOK_HELD_MAX) {
                look->held[look->held_count++] = (lc_pair){await->held[k].object, number};
            }
        }
        if (place == LETS_GO) {
            look->held_count = held_before;
            return;
        }
    }
}

/* Reads it into the scratch, and its note but for the time. */
static lc_task_note read_note(lc_task_look *look, uint64_t address)
{
    lc_task *task = &look->task;
    lc_task_read(&look->source, &look->tasks, address, LC_AWAITS_MAX, task);
    uint64_t place = lc_mix(task->state, task->count), self = task->future;
    for (uint32_t i = 0; i < task->count; i++) {
        place = lc_mix(lc_mix(place, task->awaits[i].code), task->awaits[i].instr);
        self = lc_mix(self, task->awaits[i].first);
    }
    return (lc_task_note){.task = address, .place = place, .self = lc_mix(self, place)};
}

static void read_task(lc_task_look *look, uint32_t number)
{
    look->notes[number] = read_note(look, look->found[number].key);
    look->found[number].value = waits_for(look, &look->task);
    note_blocks(look, &look->task, look->found[number].value, number);
}

/* ---- all of them ---------------------------------------------------------------------------------------- */

static void begin(lc_task_look *look, const lc_cpython_source *source, uint64_t now_ns)
{
    lc_page_cache_open(&look->cache, source->reader);
    look->source.reader = &look->cache.reader;
    look->source.layout = source->layout;
    look->source.at = source->at;
    look->source.locks = source->locks;
    look->source.walker = source->walker;
    memset(look->codes, 0, sizeof look->codes);
    memset(look->exits, 0, sizeof look->exits);
    look->is_new = false;
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

/* The number, from 1, of a task that holds the lock, of several one that waits; 0: none is known. */
static uint32_t holder_of(const lc_task_look *look, uint64_t lock)
{
    const uint32_t first = place_of(look->held, look->held_count, lock);
    for (uint32_t i = first; i > 0 && i <= look->held_count && look->held[i - 1u].key == lock; i++) {
        if (look->found[look->held[i - 1u].value].value != 0) {
            return (uint32_t)look->held[i - 1u].value + 1u;
        }
    }
    return first == 0 ? 0 : (uint32_t)look->held[first - 1u].value + 1u;
}

static void find_next(lc_task_look *look)
{
    lc_pairs_sort(look->held, look->held_count);
    for (uint32_t i = 0; i < look->count; i++) {
        const uint64_t wanted = look->found[i].value;
        const uint32_t task = wanted == 0 ? 0 : place_of(look->found, look->count, wanted);
        look->next[i] = wanted == 0 || task != 0 ? task : holder_of(look, wanted);
        look->walk[i] = 0;
    }
}

/* Whether nothing ends by itself, and all have waited like this since a look before; *hash tells this circle from
 * others. */
static bool has_stood_still(lc_task_look *look, uint32_t member, uint64_t *hash)
{
    uint32_t at = member, members = 0;
    bool stands = true, may_end = false;
    *hash = 0;
    do {
        stands &= look->notes[at].since_ns < look->began_ns;
        may_end |= look->notes[at].has_timeout;
        *hash ^= lc_mix(look->notes[at].self, look->notes[at].task);
        members++;
        at = look->next[at] - 1u;
    } while (at != member);
    may_end |= members < LEAST_MEMBERS;
    look->is_new |= !may_end && !stands;
    return stands && !may_end;
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

/* Of a long chain the innermost awaits, and those that hold something. */
static bool put_awaits(writing *w, const lc_task *task, uint32_t most, lc_look_entry *entry)
{
    lc_look_await awaits[AWAITS_TOLD];
    uint32_t holding = 0, count = 0;
    for (uint32_t i = 0; i < task->count; i++) {
        holding += task->awaits[i].held_count > 0;
    }
    const uint32_t inner = most > holding ? most - holding : 1u;
    for (uint32_t i = 0; i < task->count && count < AWAITS_TOLD; i++) {
        if (i + inner < task->count && task->awaits[i].held_count == 0) {
            entry->cut = 1;
        } else if (!put_await(w, &task->awaits[i], &awaits[count++])) {
            return false;
        }
    }
    entry->await_count = (uint16_t)count;
    entry->awaits = count == 0 ? LC_NO_REF : lc_slot_append(w->into->slot, awaits, count * sizeof *awaits);
    return count == 0 || entry->awaits != LC_NO_REF;
}

/* Each task once; `count`: how many tasks the entry stands for. One that has gone on meanwhile was seen just now. */
static void put_task(writing *w, uint32_t number, uint32_t count, uint64_t since_ns, uint32_t circle)
{
    lc_task_look *look = w->look;
    const lc_task *task = &look->task;
    for (uint32_t i = 0; i < w->count; i++) {
        if (w->out->entries[i].task == look->found[number].key) {
            w->out->entries[i].count += count;
            return;
        }
    }
    if (w->count == LC_LOOK_ENTRIES_MAX) {
        return;
    }
    const lc_task_note now = read_note(look, look->found[number].key);
    lc_look_entry entry = {
        .task = now.task,
        .loop = task->loop,
        .future = task->future,
        .since_ns = now.self == look->notes[number].self ? since_ns : look->began_ns,
        .count = count,
        .circle = circle,
        .state = (uint8_t)task->state,
        .cut = task->cut,
        .name = put_name(w, task->name),
        .loop_type = put_type(w, task->loop),
        .callback = put_callback(w, task->callback),
        .future_type = put_type(w, task->future),
        .future_callback = put_callback(w, lc_future_callback(&look->source, task->future)),
        .end_type = put_type(w, task->end),
    };
    if (put_awaits(w, task, circle != 0 ? AWAITS_OF_CIRCLES : AWAITS_TOLD, &entry)) {
        w->out->entries[w->count++] = entry;
        LC_RELEASE(w->out->entry_count, w->count);
    }
}

static void put_circles(writing *w, const uint32_t *members, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = members[i];
        do {
            put_task(w, at, 1, w->look->notes[at].since_ns, i + 1u);
            w->look->notes[at].is_told = 1;
            at = w->look->next[at] - 1u;
        } while (at != members[i]);
    }
}

typedef struct {
    uint32_t number, count;
    uint64_t since_ns; /* of the one that came last */
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

/* The group of the pairs from `from` to `end`, without those that are told. */
static group group_of(const lc_task_look *look, uint32_t from, uint32_t end)
{
    group found = {0};
    for (uint32_t i = from; i < end; i++) {
        const lc_task_note *note = &look->notes[look->order[i].value];
        if (!note->is_told) {
            found.number = found.count++ == 0 ? (uint32_t)look->order[i].value : found.number;
            found.since_ns = note->since_ns > found.since_ns ? note->since_ns : found.since_ns;
        }
    }
    return found;
}

/* The largest groups of tasks that wait for the same thing at the same places, and who holds what they wait for. */
static void put_groups(writing *w)
{
    lc_task_look *look = w->look;
    group largest[LC_LOOK_ENTRIES_MAX];
    uint32_t kept = 0;
    for (uint32_t i = 0; i < look->count; i++) {
        const uint64_t wanted = look->next[i] != 0 ? look->found[i].value : 0;
        look->order[i] = (lc_pair){lc_mix(look->notes[i].place, wanted), i};
    }
    lc_pairs_sort(look->order, look->count);
    for (uint32_t i = 0, end; i < look->count; i = end) {
        for (end = i + 1u; end < look->count && look->order[end].key == look->order[i].key; end++) {
        }
        const group found = group_of(look, i, end);
        kept = found.count == 0 ? kept : keep(largest, kept, found);
        w->out->groups++;
    }
    for (uint32_t i = 0; i < kept; i++) {
        const uint32_t number = largest[i].number, holder = look->next[number];
        put_task(w, number, largest[i].count, largest[i].since_ns, 0);
        if (holder != 0) {
            put_task(w, holder - 1u, 0, look->notes[holder - 1u].since_ns, 0);
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
    lc_page_cache_forget(&look->cache); /* what is told is read again */
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
    const uint64_t until_ns = lc_now_ns() + PART_NS;
    if (look->began_ns == 0) {
        begin(look, source, now_ns);
    }
    while (look->done < look->count && lc_now_ns() < until_ns) {
        read_task(look, look->done++);
    }
    if (look->done < look->count) {
        return LC_LOOK_GOES_ON;
    }
    const bool has_any = look->tasks.type != 0;
    const bool found = has_any && write_look(look, into);
    look->began_ns = 0;
    (void)madvise(look->cache.pages, sizeof look->cache.pages, MADV_DONTNEED);
    return !has_any       ? LC_LOOK_NOTHING
           : found        ? LC_LOOK_FOUND
           : look->is_new ? LC_LOOK_SUSPECTS
                          : LC_LOOK_IS_OVER;
}
