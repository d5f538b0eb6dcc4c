/* Nothing in a code object (3.11), or only reading it, shows whether it is the successor of another one at
 * the same address. Here the death of the earlier one is noted.
 *
 * The slot is a word of a static type that cannot be subclassed, so that there is no copy. Interpreters
 * share the type, and may have a GIL each: all that the function touches is atomic. It can be called after
 * the counting has ended, since a thread may be about to call what it has read from the slot; the
 * extension is never unloaded. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "cpython/walker/code_deaths.h"

#include "core/patches/patches.h"

static void count_death(PyObject *code);

static lc_code_deaths deaths = {.slot = &PyCode_Type.tp_dealloc, .counting = count_death};
static destructor next; /* what was in the slot */
static bool in_use;     /* ours was put there, and has not been taken out */
static unsigned watchers;

static void count_death(PyObject *code)
{
    lc_deaths_add(&deaths, (uint64_t)(uintptr_t)code);
    __atomic_load_n(&next, __ATOMIC_ACQUIRE)(code);
}

static destructor in_slot(void) { return __atomic_load_n(deaths.slot, __ATOMIC_ACQUIRE); }

static bool put_into_slot(void)
{
    if (in_slot() != count_death) {
        if (in_use) {
            return false; /* under another function, or lost: put in again, ours could come to call itself */
        }
        __atomic_store_n(&next, in_slot(), __ATOMIC_RELEASE);
        __atomic_store_n(deaths.slot, count_death, __ATOMIC_RELEASE);
        (void)lc_patch_note("+slot types.CodeType.tp_dealloc");
    }
    in_use = true;
    return true;
}

/* Whether this interpreter does call the slot. */
static bool counts_a_death(void)
{
    PyCodeObject *code = PyCode_NewEmpty("loopcanary", "dies", 1);
    if (code == NULL) {
        PyErr_Clear();
        return false;
    }
    _Atomic uint64_t *count = lc_deaths_of(&deaths, (uint64_t)(uintptr_t)code);
    const uint64_t before = atomic_load(count);
    Py_DECREF(code);
    return atomic_load(count) > before;
}

lc_code_deaths *lc_code_deaths_watch(void)
{
    if (!put_into_slot()) {
        return NULL;
    }
    if (watchers++ == 0) {
        for (uint32_t i = 0; i < LC_DEATH_COUNTS; i++) {
            atomic_fetch_add(&deaths.counts[i], 1); /* deaths since the last watch were not counted */
        }
        atomic_store(&deaths.lost, false);
    }
    if (!counts_a_death()) {
        lc_code_deaths_leave();
        return NULL;
    }
    return &deaths;
}

void lc_code_deaths_leave(void)
{
    if (--watchers == 0) {
        in_use = in_slot() != count_death;
        if (!in_use) {
            __atomic_store_n(deaths.slot, next, __ATOMIC_RELEASE);
        }
        (void)lc_patch_note("%cslot types.CodeType.tp_dealloc", in_use ? '!' : '-');
    }
}
