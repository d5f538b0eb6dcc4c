/* What of the source needs no interpreter. */
#include <sys/mman.h>
#include <unistd.h>

#include "cpython/source/cpython_source.h"
#include "cpython/locks/locks.h"
#include "core/clock/clock.h"
#include "cpython/gil/threads.h"
#include "cpython/tasks/look.h"
#include "cpython/walker/walker.h"
#include "cpython/names/work.h"

static lc_cpython_source *own(lc_frame_source *self)
{
    return (lc_cpython_source *)self; /* its first member */
}

static lc_walk_result walk(lc_frame_source *self, uint64_t thread_state, lc_stack *out)
{
    return lc_walk(own(self), thread_state, out);
}

static void gil(lc_frame_source *self, uint64_t thread_state, lc_gil_view *out)
{
    lc_gil(own(self), thread_state, out);
}

static uint64_t thread_state_of(lc_frame_source *self, uint64_t tid)
{
    return lc_thread_state(own(self), tid);
}

static uint32_t threads(lc_frame_source *self, uint64_t thread_state, lc_thread_ref *out, uint32_t room)
{
    return lc_threads(own(self), thread_state, out, room);
}

static lc_text thread_name(lc_frame_source *self, uint64_t thread_state, uint64_t tid)
{
    return lc_thread_name(own(self), thread_state, tid);
}

static void work(lc_frame_source *self, uint64_t address, uint64_t thread_state, const lc_stack *stack,
                 lc_work_names *out)
{
    lc_work(own(self), address, thread_state, stack, out);
}

static void name_ended(lc_frame_source *self, uint64_t address, lc_long_work *entry)
{
    lc_work_ended(own(self), address, entry);
}

static lc_text text(lc_frame_source *self, uint64_t str_object) { return lc_text_of(own(self), str_object); }

static lc_text kind_name(lc_frame_source *self, lc_work_kind kind) { return lc_kind_name(own(self), kind); }

static void lock(lc_frame_source *self, const lc_lock_question *question, lc_lock_view *out)
{
    lc_lock(own(self), question, out);
}

static bool waits_for(lc_frame_source *self, uint64_t thread_state, uint64_t futex, uint64_t object)
{
    return lc_waits_for_lock(own(self), thread_state, futex, object);
}

static lc_look_result look(lc_frame_source *self, lc_slot_writer *into, uint64_t now_ns)
{
    return lc_look_at_tasks(own(self), into, now_ns);
}

/* Zero pages: all of it is valid when zero, and what is never used never becomes resident. */
static void *zeros(size_t bytes)
{
    void *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void give_back(void *memory, size_t bytes)
{
    if (memory != NULL) {
        munmap(memory, bytes);
    }
}

bool lc_cpython_source_init(lc_cpython_source *source, const lc_memory_reader *reader,
                            const lc_layout *layout, const lc_interpreter_addresses *at)
{
    void *memory = zeros(sizeof(lc_walker)), *looking = zeros(sizeof(lc_task_look));
    if (memory == NULL || looking == NULL) {
        give_back(memory, sizeof(lc_walker));
        give_back(looking, sizeof(lc_task_look));
        return false;
    }
    *source = (lc_cpython_source){
        .source = {.walk = walk,
                   .gil = gil,
                   .thread_state = thread_state_of,
                   .threads = threads,
                   .thread_name = thread_name,
                   .work = work,
                   .name_ended = name_ended,
                   .text = text,
                   .lock = lock,
                   .waits_for = waits_for,
                   .kind_name = kind_name,
                   .look = look},
        .reader = reader,
        .layout = *layout,
        .at = *at,
        .walker = memory,
        .look = looking,
    };
    source->walker->clock_proves = reader->pid == getpid() && lc_thread_clock_is_fine();
    source->walker->random = UINT64_C(0x9E3779B97F4A7C15) ^ (uint64_t)(uintptr_t)memory;
    return true;
}

void lc_cpython_source_close(lc_cpython_source *source)
{
    give_back(source->walker, sizeof(lc_walker));
    give_back(source->look, sizeof(lc_task_look));
    source->walker = NULL;
    source->look = NULL;
    /* The rest stays: a thread without the GIL may be naming what it has just ended (lc_work_ended). */
}
