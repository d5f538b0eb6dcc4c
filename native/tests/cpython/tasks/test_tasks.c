/* Tasks in made-up memory, laid out as each version does: lists and sets of them, and what they await. */
#include "cpython/tasks/tasks.h"

#include "fuzz/made_up_memory.h"
#include "tests/check.h"

enum {
    TASK_TYPE = 0x4000, /* ... and what else is put where a made-up interpreter has frames */
    TASK = 0x5000,
    COROUTINES = 0x6000,
    STRIDE = 0x200,
    FUTURE = 0x9000,
    SET = 0xA000,
    TABLE = 0xB000,
    REFERENCES = 0xC000,
    METHOD = 0xD000,
    FUNCTION = 0xD100,
    LOCK = 0xD200,
    FUTURE_TYPE = 0x4200,
    GATHERING_TYPE = 0x4400,
    COROUTINE_AT = 96,
    CODE_LOCALS = 2,
    CODE_STACK = 6
};

static made_up_memory memory;
static lc_cpython_source source;
static lc_tasks tasks;
static lc_task task;

static void put(uint64_t at, uint64_t value, uint32_t bytes) { made_up_put(&memory, at, value, bytes); }

static void put_type(uint64_t at, uint64_t type) { put(at + source.layout.object_type, type, 8); }

static uint64_t coroutine(uint32_t number) { return COROUTINES + (uint64_t)number * STRIDE; }

/* A suspended coroutine of one of the four codes, with these values on its stack. */
static void put_coroutine(uint32_t number, uint32_t code, const uint64_t *values, uint32_t count)
{
    const lc_layout *l = &source.layout;
    const uint64_t at = coroutine(number), frame = at + l->generator_frame;
    const uint64_t code_at = made_up_at(MADE_UP_CODES + (uint64_t)code * MADE_UP_CODE_STRIDE);
    put_type(at, source.at.coroutine_type);
    put(at + l->generator_state, (l->state_created + 1) & 0xFFu, 1);
    put(frame + l->frame_code, code_at | (l->frame_tags & 1u), 8);
    put(frame + l->frame_instr, code_at + l->code_bytes + 4, 8);
    const uint64_t slots = frame + l->frame_bytes, depth = CODE_LOCALS + count;
    put(frame + l->frame_stack, l->frame_stack_bytes == 4 ? depth : made_up_at(slots + 8 * depth),
        l->frame_stack_bytes);
    put(slots, made_up_at(LOCK), 8); /* the first argument */
    for (uint32_t i = 0; i < count; i++) {
        put(slots + 8 * (CODE_LOCALS + i), values[i], 8);
    }
}

/* The stack of a coroutine that awaits the object: from 3.15 on there is a word above it. */
static uint32_t awaiting(uint64_t object, uint64_t *values)
{
    values[0] = object;
    values[1] = 0;
    return source.layout.awaited_slot;
}

static void set_up(uint64_t minor)
{
    made_up_interpreter(&memory, UINT64_C(0x03000000) | minor << 16 | 0xF0, 0);
    const lc_interpreter_addresses at = made_up_addresses();
    CHECK(lc_cpython_source_init(&source, &memory.reader, memory.layout, &at));
    for (uint32_t i = 0; i < 4; i++) {
        put(MADE_UP_CODES + i * MADE_UP_CODE_STRIDE + source.layout.code_locals, CODE_LOCALS, 4);
        put(MADE_UP_CODES + i * MADE_UP_CODE_STRIDE + source.layout.code_stack_size, CODE_STACK, 4);
    }
    tasks = (lc_tasks){
        .type = made_up_at(TASK_TYPE), .future = made_up_at(FUTURE_TYPE), .coroutine = COROUTINE_AT};
    put(TASK_TYPE + source.layout.type_basic_size, 160, 8);
    put_type(TASK, made_up_at(TASK_TYPE));
    put(TASK + COROUTINE_AT - 8, made_up_at(FUTURE), 8);
    put(TASK + COROUTINE_AT, made_up_at(coroutine(0)), 8);
    put(TASK + COROUTINE_AT + 8, made_up_str(&memory, 40, "name"), 8);
}

static void each_version(void (*check)(void))
{
    for (uint64_t minor = 11; minor <= 15; minor++) {
        set_up(minor);
        check();
        lc_cpython_source_close(&source);
    }
}

static void follows(void)
{
    uint64_t values[2];
    put_coroutine(0, 0, values, awaiting(made_up_at(coroutine(1)), values));
    put_coroutine(1, 1, values, awaiting(made_up_at(FUTURE), values));
    lc_task_read(&source, &tasks, made_up_at(TASK), LC_AWAITS_MAX, &task);
    CHECK(task.state == LC_TASK_SUSPENDED && task.count == 2 && !task.cut);
    CHECK(task.end == made_up_at(FUTURE) && task.future == made_up_at(FUTURE));
    CHECK(task.awaits[0].first == made_up_at(LOCK) && task.awaits[0].held_count == 0);
    lc_place place;
    CHECK(lc_place_read(&source, task.awaits[1].code, task.awaits[1].instr, &place));
    CHECK(place.qualname_length == 6 && memcmp(place.qualname, "second", 6) == 0 &&
          place.position.line == 20);
}

TEST(test_a_task_awaits_a_coroutine_that_awaits_a_future) { each_version(follows); }

static uint64_t future_read(void)
{
    lc_task_read(&source, &tasks, made_up_at(TASK), LC_AWAITS_MAX, &task);
    CHECK(task.state == LC_TASK_SUSPENDED);
    return task.future;
}

static void is_done(void)
{
    enum { CALLBACK = 24, CALLBACKS = 40 };
    const uint64_t future = made_up_at(FUTURE);
    uint64_t values[2];
    put_coroutine(0, 0, values, awaiting(future, values));
    put_type(FUTURE, made_up_at(MADE_UP_TYPES + 0x200));
    CHECK(future_read() == future); /* of a class of its own: not known */
    put_type(FUTURE, made_up_at(GATHERING_TYPE));
    put(GATHERING_TYPE + source.layout.type_base, made_up_at(FUTURE_TYPE), 8);
    CHECK(future_read() == 0);
    put(FUTURE + CALLBACK, made_up_at(METHOD), 8);
    CHECK(future_read() == future);
    put(FUTURE + CALLBACK, 0, 8);
    put(FUTURE + CALLBACKS, made_up_at(METHOD), 8);
    CHECK(future_read() == future);
}

TEST(test_a_task_does_not_wait_for_a_future_that_is_done) { each_version(is_done); }

static void ends(void)
{
    uint64_t values[2];
    put_coroutine(0, 0, values, awaiting(made_up_at(coroutine(1)), values));
    put_coroutine(1, 1, values, awaiting(made_up_at(coroutine(0)), values));
    lc_task_read(&source, &tasks, made_up_at(TASK), LC_AWAITS_MAX, &task);
    CHECK(task.cut && task.count == LC_AWAITS_MAX);
    lc_task_read(&source, &tasks, made_up_at(TASK), 1, &task);
    CHECK(task.cut && task.count == 1 && task.state == LC_TASK_SUSPENDED);
}

TEST(test_a_chain_in_a_circle_is_cut) { each_version(ends); }

static void has_states(void)
{
    put_coroutine(0, 0, NULL, 0);
    const uint64_t state_at = coroutine(0) + source.layout.generator_state;
    const uint32_t created = source.layout.state_created, executing = source.layout.state_executing;
    const struct {
        uint32_t value;
        lc_task_state state;
    } states[] = {{created, LC_TASK_BEGINS}, {executing, LC_TASK_RUNS}, {executing + 1, LC_TASK_ENDED}};
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        put(state_at, states[i].value & 0xFFu, 1);
        lc_task_read(&source, &tasks, made_up_at(TASK), LC_AWAITS_MAX, &task);
        CHECK(task.state == states[i].state);
    }
    put(TASK + COROUTINE_AT, 1, 8);
    lc_task_read(&source, &tasks, made_up_at(TASK), LC_AWAITS_MAX, &task);
    CHECK(task.state == LC_TASK_UNREADABLE && task.count == 0);
}

TEST(test_the_coroutine_s_state_is_the_task_s) { each_version(has_states); }

static void holds(void)
{
    const lc_layout *l = &source.layout;
    uint64_t values[4] = {made_up_at(METHOD)};
    uint32_t count = 1;
    if (l->with_words == 2) {
        values[0] = made_up_at(FUNCTION);
        values[count++] = made_up_at(LOCK);
    }
    put_type(METHOD, source.at.method_type);
    put(METHOD + l->method_function, made_up_at(FUNCTION), 8);
    put(METHOD + l->method_self, made_up_at(LOCK), 8);
    put_type(FUNCTION, source.at.function_type);
    put(FUNCTION + l->function_qualname, made_up_str(&memory, 41, "Lock.__aexit__"), 8);
    put_coroutine(0, 0, values, count + awaiting(made_up_at(FUTURE), values + count));
    lc_task_read(&source, &tasks, made_up_at(TASK), LC_AWAITS_MAX, &task);
    CHECK(task.count == 1 && task.awaits[0].held_count == 1);
    CHECK(task.awaits[0].held[0].object == made_up_at(LOCK));
    made_up_str(&memory, 41, "Lock.__exit___");
    lc_task_read(&source, &tasks, made_up_at(TASK), LC_AWAITS_MAX, &task);
    CHECK(task.awaits[0].held_count == 0);
}

TEST(test_an_open_async_with_block_is_known_by_what_it_will_call) { each_version(holds); }

static uint32_t listed(lc_pair *out, uint32_t room, uint32_t *others)
{
    return lc_tasks_list(&source, &tasks, made_up_at(MADE_UP_INTERP), NULL, 0, out, room, others);
}

static void lists(void)
{
    lc_pair found[4];
    uint32_t others = 0;
    source.locks.types[LC_TYPE_REFERENCE] = made_up_at(MADE_UP_TYPES + 0x100);
    put_type(REFERENCES, made_up_at(MADE_UP_TYPES + 0x100));
    put(REFERENCES + source.layout.weakref_object, made_up_at(TASK), 8);
    put(TABLE + 16, made_up_at(REFERENCES), 8);
    put(TABLE + 32, made_up_at(REFERENCES), 8); /* a slot that was in use */
    put(TABLE + 40, UINT64_MAX, 8);
    put(SET + 32, 3, 8); /* mask */
    put(SET + 40, made_up_at(TABLE), 8);
    tasks.sets[0] = made_up_at(SET);
    CHECK(listed(found, 4, &others) == 1 && found[0].key == made_up_at(TASK) && others == 0);
    CHECK(listed(found, 0, &others) == 0);
    put(REFERENCES + source.layout.weakref_object, made_up_at(FUTURE), 8);
    put_type(FUTURE, made_up_at(MADE_UP_TYPES + 0x200));
    CHECK(listed(found, 4, &others) == 0 && others == 1);
    put(SET + 32, UINT64_MAX, 8);
    CHECK(listed(found, 4, &others) == 0);
}

TEST(test_tasks_in_a_weak_set_are_listed_and_others_counted) { each_version(lists); }

static void lists_nodes(void)
{
    enum { NODE = 128, HEAD = 0x800 };
    lc_pair found[4];
    uint32_t others = 0;
    tasks.node = NODE;
    tasks.interp_head = HEAD;
    put(MADE_UP_INTERP + HEAD, made_up_at(TASK + NODE), 8);
    put(TASK + NODE, made_up_at(MADE_UP_INTERP + HEAD), 8);
    CHECK(listed(found, 4, &others) == 1 && found[0].key == made_up_at(TASK));
    put(TASK + NODE, made_up_at(TASK + NODE), 8); /* a list that never comes back */
    CHECK(listed(found, 4, &others) == 1);
    put_type(TASK, made_up_at(MADE_UP_TYPES + 0x200));
    CHECK(listed(found, 4, &others) == 0 && others == 1000);
}

TEST(test_tasks_in_a_list_are_found_once_and_a_list_in_a_circle_ends) { each_version(lists_nodes); }

static void learns(void)
{
    const lc_pair all[] = {{made_up_at(FUTURE), 0}, {made_up_at(TASK), 0}};
    put_coroutine(0, 0, NULL, 0);
    tasks.coroutine = 0;
    lc_tasks_learn(&source, &tasks, all, 1);
    CHECK(tasks.coroutine == 0);
    lc_tasks_learn(&source, &tasks, all, 2);
    CHECK(tasks.coroutine == COROUTINE_AT);
}

TEST(test_where_a_task_has_its_coroutine_is_learned_from_one) { each_version(learns); }

int main(void) { return run_tests(); }
