#include "core/flight/slot_writer.h"

#include <string.h>

#include "core/lane/lane.h"

enum { PROBES = 8 }; /* tries in a table before an entry is simply stored again */

void lc_slot_writer_begin(lc_slot_writer *writer, lc_slot *slot)
{
    memset(writer, 0, sizeof *writer);
    writer->slot = slot;
    memset((char *)slot + offsetof(lc_slot, lane), 0, offsetof(lc_slot, threads) - offsetof(lc_slot, lane));
    LC_STORE(slot->heap_used, LC_SLOT_HEAP_OFFSET);
}

static void *in_slot(lc_slot *slot, uint32_t offset) { return (char *)slot + offset; }

uint64_t lc_slot_room(const lc_slot *slot) { return LC_SLOT_BYTES - LC_LOAD(slot->heap_used); }

/* Nothing is in use until heap_used says so. */
uint32_t lc_slot_append(lc_slot *slot, const void *bytes, uint64_t count)
{
    const uint64_t at = (LC_LOAD(slot->heap_used) + 7u) & ~UINT64_C(7);
    if (at + count > LC_SLOT_BYTES) {
        return LC_NO_REF;
    }
    memcpy(in_slot(slot, (uint32_t)at), bytes, count);
    LC_RELEASE(slot->heap_used, at + count);
    return (uint32_t)at;
}

static uint64_t hash_text(lc_text text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a, 64 bits */
    for (uint32_t i = 0; i < text.length; i++) {
        hash = (hash ^ (uint8_t)text.bytes[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static bool same_text(lc_slot *slot, lc_ref ref, lc_text text)
{
    return ref.bytes == text.length && memcmp(in_slot(slot, ref.offset), text.bytes, text.length) == 0;
}

lc_ref lc_slot_put_text(lc_slot_writer *writer, lc_text text)
{
    const lc_ref none = {0, 0};
    lc_slot *slot = writer->slot;
    if (text.length == 0) {
        return none;
    }
    const uint64_t hash = hash_text(text) | 1u;
    uint32_t place = (uint32_t)hash % LC_KNOWN_STRINGS;
    for (int i = 0; i < PROBES && writer->strings[place].hash != 0; i++) {
        if (writer->strings[place].hash == hash && same_text(slot, writer->strings[place].ref, text)) {
            return writer->strings[place].ref;
        }
        place = (place + 1u) % LC_KNOWN_STRINGS;
    }
    const uint32_t offset = lc_slot_append(slot, text.bytes, text.length);
    if (offset == LC_NO_REF) {
        return none;
    }
    writer->strings[place].hash = hash;
    writer->strings[place].ref = (lc_ref){offset, text.length};
    return writer->strings[place].ref;
}

static lc_known_place *place_of(lc_known_place *table, uint32_t size, uint32_t place, uint64_t key)
{
    for (int i = 0; i < PROBES && table[place].key != 0 && table[place].key != key; i++) {
        place = (place + 1u) % size;
    }
    return &table[place];
}

lc_known_place *lc_slot_code_place(lc_slot_writer *writer, uint64_t serial)
{
    return place_of(writer->codes, LC_KNOWN_CODES, (uint32_t)(serial * 0x9E3779B1u) % LC_KNOWN_CODES, serial);
}

lc_known_place *lc_slot_stack_place(lc_slot_writer *writer, uint64_t hash)
{
    return place_of(writer->stacks, LC_KNOWN_STACKS, (uint32_t)(hash >> 8) % LC_KNOWN_STACKS, hash);
}

uint32_t lc_slot_put_code(lc_slot_writer *writer, const lc_code_facts *code)
{
    lc_known_place *known = lc_slot_code_place(writer, code->serial);
    if (known->key == code->serial) {
        return known->offset;
    }
    const lc_code_entry entry = {
        .filename = lc_slot_put_text(writer, code->filename),
        .qualname = lc_slot_put_text(writer, code->qualname),
        .first_line = code->first_line,
        .code_flags = code->code_flags,
    };
    const uint32_t offset = lc_slot_append(writer->slot, &entry, sizeof entry);
    if (offset != LC_NO_REF) {
        *known = (lc_known_place){code->serial, offset};
    }
    return offset;
}

/* Codes first, so that the stack's own bytes lie together; false: the heap is full. */
static bool resolve(lc_slot_writer *writer, const lc_stack *stack, lc_whole_stack *out)
{
    out->head = (lc_stack_entry){
        .frames = stack->count,
        .flags = (stack->truncated ? LC_STACK_TRUNCATED : 0u) | (stack->inner_cut ? LC_STACK_INNER_CUT : 0u),
        .hash = stack->hash | 1u,
    };
    for (uint32_t i = 0; i < stack->count; i++) {
        const lc_frame *frame = &stack->frames[i];
        out->frames[i] = (lc_frame_entry){
            .code = lc_slot_put_code(writer, frame->code),
            .line = frame->line,
            .end_line = frame->end_line,
            .column = frame->column,
            .end_column = frame->end_column,
        };
        if (out->frames[i].code == LC_NO_REF) {
            return false;
        }
    }
    return true;
}

uint32_t lc_slot_put_stack(lc_slot_writer *writer, const lc_stack *stack)
{
    lc_whole_stack whole;
    const uint64_t hash = stack->hash | 1u;
    lc_known_place *known = lc_slot_stack_place(writer, hash);
    if (known->key == hash) {
        return known->offset;
    }
    if (!resolve(writer, stack, &whole)) {
        return LC_NO_REF;
    }
    const uint32_t offset = lc_slot_append(writer->slot, &whole, lc_stack_bytes(stack->count));
    if (offset != LC_NO_REF) {
        *known = (lc_known_place){hash, offset};
    }
    return offset;
}

bool lc_slot_put_sample(lc_slot_writer *writer, const lc_sample_entry *sample)
{
    lc_slot *slot = writer->slot;
    const uint64_t count = LC_LOAD(slot->sample_count);
    if (count >= LC_SAMPLE_MAX) {
        return false;
    }
    slot->samples[count] = *sample;
    LC_RELEASE(slot->sample_count, count + 1u);
    return true;
}

void lc_slot_thin_samples(lc_slot_writer *writer)
{
    lc_slot *slot = writer->slot;
    const uint64_t count = LC_LOAD(slot->sample_count);
    LC_STORE(slot->sample_count, 1); /* the first one stays where it is */
    atomic_thread_fence(memory_order_release);
    for (uint64_t i = 1; 2 * i < count; i++) {
        slot->samples[i] = slot->samples[2 * i];
    }
    LC_RELEASE(slot->sample_count, (count + 1u) / 2u);
}

static void thin_hosts(lc_slot_writer *writer)
{
    lc_slot *slot = writer->slot;
    LC_STORE(slot->host_count, 1); /* the first one stays where it is */
    atomic_thread_fence(memory_order_release);
    for (uint32_t i = 1; 2 * i < LC_HOST_MAX; i++) {
        slot->hosts[i] = slot->hosts[2 * i];
    }
    LC_RELEASE(slot->host_count, LC_HOST_MAX / 2u);
    writer->host_interval_ns *= 2u;
}

void lc_slot_put_host(lc_slot_writer *writer, const lc_host_entry *host)
{
    lc_slot *slot = writer->slot;
    if (LC_LOAD(slot->host_count) >= LC_HOST_MAX) {
        thin_hosts(writer);
    }
    const uint64_t count = LC_LOAD(slot->host_count);
    slot->hosts[count] = *host;
    LC_RELEASE(slot->host_count, count + 1u);
}

bool lc_slot_put_thread(lc_slot_writer *writer, const lc_thread_entry *thread)
{
    lc_slot *slot = writer->slot;
    const uint64_t count = LC_LOAD(slot->thread_count);
    if (count >= LC_SLOT_THREADS_MAX) {
        return false;
    }
    slot->threads[count] = *thread;
    LC_RELEASE(slot->thread_count, count + 1u);
    return true;
}

bool lc_slot_wants_thread_name(const lc_slot_writer *writer, uint64_t tid)
{
    for (uint32_t i = 0; i < writer->thread_count; i++) {
        if (writer->threads[i] == tid) {
            return false;
        }
    }
    return writer->thread_count < LC_KNOWN_THREADS;
}

void lc_slot_put_thread_name(lc_slot_writer *writer, uint64_t tid, lc_text name)
{
    lc_slot *slot = writer->slot;
    const lc_thread_name_entry entry = {
        .tid = (uint32_t)tid,
        .before = (uint32_t)LC_LOAD(slot->thread_names),
        .name = lc_slot_put_text(writer, name),
    };
    const uint32_t offset = entry.name.bytes == 0 ? LC_NO_REF : lc_slot_append(slot, &entry, sizeof entry);
    if (offset == LC_NO_REF) {
        return;
    }
    LC_RELEASE(slot->thread_names, offset);
    writer->threads[writer->thread_count++] = (uint32_t)tid;
}
