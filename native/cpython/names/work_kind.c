/* What kind of work a callable is, found on the program's own thread: work.c in plain loads.
 *
 * Every object that is looked into is alive: the callable is the handle's, and the rest is its. */
#include <string.h>

#include "cpython/names/work.h"
#include "cpython/names/work_words.h"
#include "cpython/source/cpython_source.h"

#define CALLABLE_DEPTH_MAX 8u /* partial of partial of method of ... */
#define BASES_MAX 8u

static uint64_t load(uint64_t address)
{
    uint64_t value;
    memcpy(&value, (const void *)(uintptr_t)address, sizeof value);
    return value;
}

static uint64_t type_of(const lc_cpython_source *source, uint64_t object)
{
    return load(object + source->layout.object_type);
}

static bool is_instance(const lc_cpython_source *source, uint64_t object, uint64_t type)
{
    uint64_t each = object == 0 || type == 0 ? 0 : type_of(source, object);
    for (uint32_t i = 0; i < BASES_MAX && each != 0; i++) {
        if (each == type) {
            return true;
        }
        each = load(each + source->layout.type_base);
    }
    return false;
}

/* By the type's name, without its module. */
static lc_work_kind of_type(const lc_cpython_source *source, uint64_t type)
{
    const uint64_t name = load(type + source->layout.type_name);
    return name == 0 ? (lc_work_kind){0} : (lc_work_kind){name | LC_KIND_C_STRING, 0};
}

lc_work_kind lc_work_kind_of_run(const lc_cpython_source *source, uint64_t coroutine)
{
    if (coroutine == 0) {
        return (lc_work_kind){0};
    }
    const uint64_t type = type_of(source, coroutine);
    if (type == source->at.coroutine_type || type == source->at.generator_type) {
        return (lc_work_kind){load(coroutine + source->layout.generator_qualname), 0};
    }
    return of_type(source, type);
}

static lc_work_kind of_task(const lc_cpython_source *source, uint64_t task)
{
    return lc_work_kind_of_run(source, load(task + source->asyncio.task_coroutine));
}

static lc_work_kind of_builtin(const lc_cpython_source *source, uint64_t builtin)
{
    const lc_layout *l = &source->layout;
    const uint64_t self = load(builtin + l->cfunction_self);
    if (is_instance(source, self, source->asyncio.task_type)) {
        return of_task(source, self);
    }
    const uint64_t name = load(load(builtin + l->cfunction_def));
    const uint64_t owner = self == 0 ? 0 : load(type_of(source, self) + l->type_name);
    return (lc_work_kind){name | LC_KIND_C_STRING, owner};
}

lc_work_kind lc_work_kind_of(const lc_cpython_source *source, const void *callable)
{
    const lc_layout *l = &source->layout;
    const lc_interpreter_addresses *at = &source->at;
    const lc_asyncio_facts *asyncio = &source->asyncio;
    const bool learned = atomic_load_explicit(&asyncio->learned, memory_order_acquire);
    uint64_t object = (uint64_t)(uintptr_t)callable;
    for (uint32_t depth = 0; depth < CALLABLE_DEPTH_MAX && object != 0; depth++) {
        const uint64_t type = type_of(source, object);
        if (type == at->str_type) { /* work that the program has named itself */
            return (lc_work_kind){object, 0};
        }
        if (type == at->function_type) {
            return (lc_work_kind){load(object + l->function_qualname), 0};
        }
        if (type == at->cfunction_type) {
            return of_builtin(source, object);
        }
        if (type == at->method_type) {
            object = load(object + l->method_function);
        } else if (learned && type == asyncio->step_type && asyncio->task_type != 0) {
            const uint64_t task = load(object + asyncio->step_task);
            return is_instance(source, task, asyncio->task_type) ? of_task(source, task)
                                                                 : of_type(source, type);
        } else if (learned && type == asyncio->partial_type) {
            object = load(object + asyncio->partial_function);
        } else if (lc_is_trio_task(source, type)) {
            return lc_work_kind_of_run(source, load(object + source->trio.task_coroutine));
        } else {
            return of_type(source, type);
        }
    }
    return (lc_work_kind){0};
}

const void *lc_callable_of(const lc_cpython_source *source, uint64_t work)
{
    const lc_asyncio_facts *asyncio = &source->asyncio;
    if (work == 0 || lc_is_qt_work(work) || lc_is_called_work(work)) {
        return NULL;
    }
    uint64_t found = work;
    if (lc_is_noted_work(work)) {
        found = ((const lc_work_note *)(uintptr_t)(work & ~LC_WORK_TAG_MASK))->callable;
    } else if (atomic_load_explicit(&asyncio->learned, memory_order_acquire) &&
               is_instance(source, work, asyncio->handle_type)) {
        found = load(work + asyncio->handle_callback);
    }
    return (const void *)(uintptr_t)found;
}

const void *lc_task_of(const lc_cpython_source *source, const void *callable)
{
    const lc_asyncio_facts *asyncio = &source->asyncio;
    const uint64_t object = (uint64_t)(uintptr_t)callable;
    if (object == 0 || !atomic_load_explicit(&asyncio->learned, memory_order_acquire)) {
        return NULL;
    }
    const uint64_t type = type_of(source, object);
    uint64_t task = 0;
    if (type == source->at.cfunction_type) {
        task = load(object + source->layout.cfunction_self);
    } else if (type == asyncio->step_type && type != 0) {
        task = load(object + asyncio->step_task);
    }
    return is_instance(source, task, asyncio->task_type) ? (const void *)(uintptr_t)task : NULL;
}
