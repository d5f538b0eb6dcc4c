#include "core/flight/slot_writer.h"

#include <string.h>

#include "core/lane/lane.h"

typedef struct {
    lc_slot_writer *to;
    const lc_slot *from;
    uint32_t *places; /* of lc_moved */
} move;

static const void *was_at(const move *m, uint32_t offset) { return (const char *)m->from + offset; }

static lc_ref move_text(const move *m, lc_ref ref)
{
    uint32_t *place = &m->places[ref.offset / 8u];
    if (ref.bytes != 0 && *place == 0) {
        *place = lc_slot_put_text(m->to, (lc_text){was_at(m, ref.offset), ref.bytes}).offset;
    }
    return (lc_ref){*place, ref.bytes};
}

static uint32_t move_code(const move *m, uint32_t offset)
{
    uint32_t *place = &m->places[offset / 8u];
    if (*place == 0) {
        lc_code_entry entry;
        memcpy(&entry, was_at(m, offset), sizeof entry);
        entry.filename = move_text(m, entry.filename);
        entry.qualname = move_text(m, entry.qualname);
        *place = lc_slot_append(m->to->slot, &entry, sizeof entry);
    }
    return *place;
}

static uint32_t move_stack(const move *m, uint32_t offset)
{
    uint32_t *place = &m->places[offset / 8u];
    if (offset != LC_NO_REF && *place == 0) {
        lc_whole_stack whole;
        memcpy(&whole.head, was_at(m, offset), sizeof whole.head);
        const uint64_t bytes = lc_stack_bytes(whole.head.frames);
        memcpy(&whole, was_at(m, offset), bytes);
        for (uint32_t i = 0; i < whole.head.frames; i++) {
            whole.frames[i].code = move_code(m, whole.frames[i].code);
        }
        *place = lc_slot_append(m->to->slot, &whole, bytes);
    }
    return *place;
}

static void move_thread_names(const move *m)
{
    lc_slot *slot = m->to->slot;
    LC_STORE(slot->thread_names, LC_NO_REF);
    for (uint32_t at = (uint32_t)LC_LOAD(m->from->thread_names); at != LC_NO_REF;) {
        lc_thread_name_entry entry;
        memcpy(&entry, was_at(m, at), sizeof entry);
        at = entry.before;
        entry.before = (uint32_t)LC_LOAD(slot->thread_names);
        entry.name = move_text(m, entry.name);
        LC_STORE(slot->thread_names, lc_slot_append(slot, &entry, sizeof entry));
    }
}

/* Offset of the circle's entry that is `steps` before the last one; LC_NO_REF: there is none. */
static uint32_t wait_before(const move *m, uint32_t steps, lc_wait_entry *entry)
{
    uint32_t at = (uint32_t)LC_LOAD(m->from->circle);
    for (; at != LC_NO_REF; at = entry->before) {
        memcpy(entry, was_at(m, at), sizeof *entry);
        if (steps-- == 0) {
            break;
        }
    }
    return at;
}

/* The first one first: each refers to what lies before it. */
static void move_circle(const move *m)
{
    uint32_t length = 0, before = LC_NO_REF;
    lc_wait_entry entry;
    while (wait_before(m, length, &entry) != LC_NO_REF) {
        length++;
    }
    while (length > 0) {
        (void)wait_before(m, --length, &entry);
        entry.before = before;
        entry.stack = move_stack(m, entry.stack);
        entry.module = move_text(m, entry.module);
        before = lc_slot_append(m->to->slot, &entry, sizeof entry);
    }
    LC_STORE(m->to->slot->circle, before);
}

static void move_facts(const move *m)
{
    lc_slot *slot = m->to->slot;
    memcpy((char *)slot + offsetof(lc_slot, lane), was_at(m, offsetof(lc_slot, lane)),
           offsetof(lc_slot, threads) - offsetof(lc_slot, lane));
    LC_STORE(slot->serial, LC_LOAD(m->from->serial));
    LC_STORE(slot->heap_used, LC_SLOT_HEAP_OFFSET);
    slot->callback = move_text(m, m->from->callback);
    slot->task = move_text(m, m->from->task);
    slot->scene = move_text(m, m->from->scene);
    move_thread_names(m);
    move_circle(m);
}

static void move_tables(const move *m)
{
    lc_slot *slot = m->to->slot;
    memcpy(slot->threads, m->from->threads, LC_LOAD(slot->thread_count) * sizeof *slot->threads);
    for (uint64_t i = 0; i < LC_LOAD(slot->thread_count); i++) {
        slot->threads[i].stack = move_stack(m, slot->threads[i].stack);
    }
    memcpy(slot->hosts, m->from->hosts, LC_LOAD(slot->host_count) * sizeof *slot->hosts);
    memcpy(slot->contributors, m->from->contributors,
           LC_LOAD(slot->contributor_count) * sizeof *slot->contributors);
    for (uint64_t i = 0; i < LC_LOAD(slot->contributor_count); i++) {
        slot->contributors[i].name = move_text(m, slot->contributors[i].name);
        slot->contributors[i].site_file = move_text(m, slot->contributors[i].site_file);
    }
}

static void move_samples(const move *m, uint64_t one_of)
{
    lc_slot *slot = m->to->slot;
    const uint64_t count = LC_LOAD(m->from->sample_count);
    uint64_t kept = 0;
    for (uint64_t i = 0; i < count; i += one_of) {
        lc_sample_entry *sample = &slot->samples[kept++];
        *sample = m->from->samples[i];
        sample->stack = move_stack(m, sample->stack);
        sample->holder_stack = move_stack(m, sample->holder_stack);
        sample->target = move_text(m, sample->target);
    }
    LC_STORE(slot->sample_count, kept);
}

/* What is known of the new slot, so that it is not stored there again. Texts are known as they are moved. */
static void move_knowledge(const move *m, const lc_slot_writer *from)
{
    lc_slot_writer *to = m->to;
    for (uint32_t i = 0; i < LC_KNOWN_CODES; i++) {
        const uint32_t place = m->places[from->codes[i].offset / 8u];
        if (from->codes[i].key != 0 && place != 0) {
            *lc_slot_code_place(to, from->codes[i].key) = (lc_known_place){from->codes[i].key, place};
        }
    }
    for (uint32_t i = 0; i < LC_KNOWN_STACKS; i++) {
        const uint32_t place = m->places[from->stacks[i].offset / 8u];
        if (from->stacks[i].key != 0 && place != 0) {
            *lc_slot_stack_place(to, from->stacks[i].key) = (lc_known_place){from->stacks[i].key, place};
        }
    }
    memcpy(to->threads, from->threads, sizeof to->threads);
    to->thread_count = from->thread_count;
    memcpy(to->contributors, from->contributors, sizeof to->contributors);
    to->tally_from = from->tally_from;
    to->host_interval_ns = from->host_interval_ns;
}

void lc_slot_move(lc_slot_writer *to, const lc_slot_writer *from, uint64_t one_of, lc_moved *moved)
{
    const move m = {to, from->slot, moved->places};
    memset(moved, 0, sizeof *moved);
    lc_slot_writer_begin(to, to->slot);
    move_facts(&m);
    move_tables(&m);
    move_samples(&m, one_of);
    move_knowledge(&m, from);
}
