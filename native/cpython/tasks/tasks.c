#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stddef.h>

#include "cpython/objects/attributes.h"
#include "cpython/objects/objects.h"
#include "cpython/tasks/tasks.h"

enum {
    MODULE_NAMES = 16, /* PyModuleObject.md_dict, Include/internal/pycore_moduleobject.h */
    SET_SLOTS_MAX = 8 * 1024 * 1024,
    SLOTS_EACH = 64,
    TASK_BYTES_MAX = 1024,
    BASES_MAX = 8,
    JUNK_OF_A_LIST_MAX = 1000,
    PAGE = 4096,
    PAGES_AROUND = 1024
};

typedef struct {
    uint64_t key, hash;
} set_slot; /* setentry, Include/cpython/setobject.h */

typedef struct { /* Py_AsyncioModuleDebugOffsets */
    uint64_t task_size, name, awaited_by, is_task, awaited_by_is_set, coroutine, node;
    uint64_t interp_size, interp_head;
    uint64_t thread_size, running_loop, running_task, thread_head;
} published;

static bool is_published(const published *p, uint64_t task_size)
{
    return p->task_size == task_size && p->coroutine >= 24 && p->name == p->coroutine + 8 &&
           p->name < task_size && p->node < task_size && p->node > p->name &&
           p->interp_head < p->interp_size && p->thread_head < p->thread_size &&
           p->running_task == p->running_loop + 8 && p->interp_size < UINT32_MAX &&
           p->thread_size < UINT32_MAX;
}

/* The description lies in the module's data, not far from its methods' names; in no symbol table. */
static void find_published(const lc_cpython_source *source, lc_tasks *out)
{
    const lc_layout *l = &source->layout;
    const uint64_t size = lc_word_at(source, out->type + l->type_basic_size);
    const uint64_t near = lc_word_at(source, out->type + l->type_methods) & ~(uint64_t)(PAGE - 1);
    uint8_t data[PAGE + sizeof(published)];
    for (uint64_t i = 0; near != 0 && size != 0 && i < 2 * PAGES_AROUND; i++) {
        const uint64_t page = near + (i % 2 ? i / 2 + 1 : -(i / 2)) * PAGE;
        const size_t bytes = lc_read(source->reader, page, data, sizeof data) ? sizeof data : PAGE;
        if (bytes == PAGE && !lc_read(source->reader, page, data, PAGE)) {
            continue;
        }
        for (size_t at = 0; at + sizeof(published) <= bytes; at += 8) {
            published p;
            memcpy(&p, data + at, sizeof p);
            if (is_published(&p, size)) {
                out->coroutine = (uint32_t)p.coroutine;
                out->node = (uint32_t)p.node;
                out->interp_head = (uint32_t)p.interp_head;
                out->thread_head = (uint32_t)p.thread_head;
                return;
            }
        }
    }
}

static uint64_t module_of(const lc_cpython_source *source, uint64_t interp, const char *name)
{
    return lc_named_value(source, lc_word_at(source, interp + source->layout.interp_modules), name);
}

bool lc_module_loaded(const lc_cpython_source *source, uint64_t interp, const char *name)
{
    return module_of(source, interp, name) != 0;
}

void lc_tasks_find(lc_cpython_source *source, uint64_t interp, lc_tasks *out)
{
    static const char *const weak_sets[] = {"_all_tasks", "_scheduled_tasks"}; /* 3.11; later */
    const lc_tasks before = *out;
    *out = (lc_tasks){0};
    const uint64_t module = module_of(source, interp, "asyncio.tasks");
    const uint64_t names = module == 0 ? 0 : lc_word_at(source, module + MODULE_NAMES);
    out->loaded = module != 0;
    out->type = lc_named_value(source, names, "_CTask");
    out->future = out->type == 0 ? 0 : lc_word_at(source, out->type + source->layout.type_base);
    out->sets[1] = lc_named_value(source, names, "_eager_tasks");
    for (int i = 0; i < 2 && out->sets[0] == 0; i++) {
        out->sets[0] = lc_attribute(source, lc_named_value(source, names, weak_sets[i]), "data");
    }
    if (out->type != 0 && out->type == before.type && before.coroutine != 0) {
        out->coroutine = before.coroutine;
        out->node = before.node;
        out->interp_head = before.interp_head;
        out->thread_head = before.thread_head;
    } else if (out->type != 0 && source->layout.dict_keys == LC_ABSENT) {
        find_published(source, out);
    }
}

/* ---- which tasks there are ---------------------------------------------------------------------- */

typedef struct {
    const lc_cpython_source *source;
    const lc_tasks *tasks;
    lc_pair *out;
    uint32_t room, count, others, junk; /* junk: all that is no task */
} listing;

bool lc_is_instance(const lc_cpython_source *source, uint64_t object, uint64_t type)
{
    uint64_t its = lc_type_at(source, object);
    for (int i = 0; i < BASES_MAX && its != 0 && its != type; i++) {
        its = lc_word_at(source, its + source->layout.type_base);
    }
    return its != 0 && its == type;
}

static bool goes_on(const listing *list) { return list->count < list->room && list->junk < LC_JUNK_MAX; }

static void add(listing *list, uint64_t object)
{
    const lc_cpython_source *source = list->source;
    if (lc_is_instance(source, object, list->tasks->type)) {
        list->out[list->count++] = (lc_pair){object, 0};
        return;
    }
    list->junk++;
    const uint64_t type = lc_type_at(source, object); /* a weak reference to what has died refers to None */
    list->others +=
        type != 0 && !lc_c_string_is(source, lc_word_at(source, type + source->layout.type_name), "NoneType");
}

static uint64_t behind(const lc_cpython_source *source, uint64_t reference)
{
    const uint64_t type = lc_type_at(source, reference);
    return type != 0 && type == source->locks.types[LC_TYPE_REFERENCE]
               ? lc_word_at(source, reference + source->layout.weakref_object)
               : 0;
}

static void add_slots(listing *list, const set_slot *slots, uint64_t count, bool are_weak)
{
    for (uint64_t i = 0; i < count && goes_on(list); i++) {
        /* A slot that was in use has an object as a mark, whose hash is -1. */
        if (slots[i].key != 0 && slots[i].hash != UINT64_MAX) {
            add(list, are_weak ? behind(list->source, slots[i].key) : slots[i].key);
        }
    }
}

static void add_set(listing *list, uint64_t set, bool are_weak)
{
    const uint64_t mask = set == 0 ? 0 : lc_word_at(list->source, set + offsetof(PySetObject, mask));
    const uint64_t table = set == 0 ? 0 : lc_word_at(list->source, set + offsetof(PySetObject, table));
    set_slot slots[SLOTS_EACH];
    for (uint64_t at = 0; table != 0 && at <= mask && mask < SET_SLOTS_MAX && goes_on(list);
         at += SLOTS_EACH) {
        const uint64_t count = mask + 1 - at < SLOTS_EACH ? mask + 1 - at : SLOTS_EACH;
        if (lc_read(list->source->reader, table + at * sizeof slots[0], slots,
                    (size_t)count * sizeof slots[0])) {
            add_slots(list, slots, count, are_weak);
        }
    }
}

/* A list of tasks goes round and comes back to its head (Include/internal/pycore_llist.h: next comes first). */
static void add_list(listing *list, uint64_t head)
{
    uint64_t node = lc_word_at(list->source, head);
    const uint32_t junk = list->junk;
    while (node != 0 && node != head && goes_on(list) && list->junk - junk < JUNK_OF_A_LIST_MAX) {
        add(list, node - list->tasks->node);
        node = lc_word_at(list->source, node);
    }
}

/* Lets the pair at `top` of a heap of `count` sink to its place. */
static void sink(lc_pair *all, uint32_t top, uint32_t count)
{
    const lc_pair sinking = all[top];
    for (uint32_t child; (child = 2u * top + 1u) < count; top = child) {
        child += child + 1u < count && all[child + 1u].key > all[child].key;
        if (all[child].key <= sinking.key) {
            break;
        }
        all[top] = all[child];
    }
    all[top] = sinking;
}

/* Heapsort: qsort may allocate. */
void lc_pairs_sort(lc_pair *all, uint32_t count)
{
    for (uint32_t i = count / 2u; i > 0; i--) {
        sink(all, i - 1u, count);
    }
    for (uint32_t last = count; last > 1; last--) {
        const lc_pair largest = all[0];
        all[0] = all[last - 1u];
        all[last - 1u] = largest;
        sink(all, 0, last - 1u);
    }
}

static uint32_t without_doubles(lc_pair *all, uint32_t count)
{
    uint32_t kept = 0;
    lc_pairs_sort(all, count);
    for (uint32_t i = 0; i < count; i++) {
        if (kept == 0 || all[kept - 1].key != all[i].key) {
            all[kept++] = all[i];
        }
    }
    return kept;
}

uint32_t lc_tasks_list(const lc_cpython_source *source, const lc_tasks *tasks, uint64_t interp,
                       const lc_thread_ref *threads, uint32_t thread_count, lc_pair *out, uint32_t room,
                       uint32_t *others)
{
    listing list = {.source = source, .tasks = tasks, .out = out, .room = room};
    add_set(&list, tasks->sets[0], true);
    add_set(&list, tasks->sets[1], false);
    for (uint32_t i = 0; i < thread_count && tasks->node != 0; i++) {
        add_list(&list, threads[i].thread_state + tasks->thread_head);
    }
    if (tasks->node != 0) {
        add_list(&list, interp + tasks->interp_head); /* those whose thread has ended */
    }
    *others = list.others;
    return without_doubles(out, list.count);
}

/* The one word of the task that is a coroutine, with a name behind it. */
static uint32_t coroutine_in(const lc_cpython_source *source, uint64_t task, uint64_t bytes)
{
    uint64_t words[TASK_BYTES_MAX / 8];
    const uint64_t count = bytes / 8;
    if (count > sizeof words / sizeof words[0] || !lc_read(source->reader, task, words, (size_t)count * 8)) {
        return 0;
    }
    for (uint32_t i = 3; i + 1 < count; i++) {
        const uint64_t type = lc_type_at(source, words[i]), behind_it = lc_type_at(source, words[i + 1]);
        if (type != 0 && (type == source->at.coroutine_type || type == source->at.generator_type) &&
            (behind_it == source->at.str_type || behind_it == source->at.int_type)) {
            return i * 8;
        }
    }
    return 0;
}

void lc_tasks_learn(const lc_cpython_source *source, lc_tasks *tasks, const lc_pair *all, uint32_t count)
{
    const uint64_t bytes = lc_word_at(source, tasks->type + source->layout.type_basic_size);
    for (uint32_t i = 0; i < count && tasks->coroutine == 0; i++) {
        tasks->coroutine = coroutine_in(source, all[i].key, bytes);
    }
}
