/* What uvloop is about to run, found where uvloop enters a callback's context.
 *
 * uvloop's handles are C objects without hooks. What can be seen from outside is the call of PyContext_Enter(context)
 * before each callback: by Handle._run and TimerHandle._run, and for a protocol's methods. The caller still needs the
 * handle (or the method) after that call, so it holds it in a register that calls preserve or in a place of its
 * stack frame: the same at each call from the same place of the code. Which one, is learned from the first calls
 * from there: each of these words is read as an object, as carefully as the watchdog reads (memory_reader.h), until
 * only one is left that has been the right kind of object every time, or several that have gone together from object to
 * object: copies. From then on only that word, or the lowest of them, is looked at.
 *
 * That it was learned proves nothing: no word is ever loaded from. lc_uvloop_find_held tells it as it is, for whoever reads it
 * carefully later, and costs no system call; lc_uvloop_find_work reads it carefully at once.
 *
 * GIL held in all functions.
 */
#ifndef LOOPCANARY_UVLOOP_WORK_H
#define LOOPCANARY_UVLOOP_WORK_H

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "cpython_source.h"
#include "work_uvloop.h"

/* Words of the caller at its call: registers that calls preserve, the address it is returned to, its stack. */
#if defined(__x86_64__)
enum { LC_UVLOOP_RETURN = 6 };
#elif defined(__aarch64__)
enum { LC_UVLOOP_RETURN = 11 };
#endif
enum { LC_UVLOOP_WORDS = LC_UVLOOP_RETURN + 1 + 24 };

typedef enum {
    LC_UVLOOP_UNKNOWN, /* something runs; what it is could not be told */
    LC_UVLOOP_CALLBACK,
    LC_UVLOOP_INNER /* a handle of uvloop's own that runs others, such as the one for the queue */
} lc_uvloop_role;

typedef struct {
    lc_uvloop_role role;
    PyObject *callable; /* or a str, its name; borrowed, kept by the handle while it runs; NULL: no name */
    double due_s;       /* when a timer was due, by the monotonic clock; 0: no timer */
    bool proven;        /* that `callable` is alive need not be doubted */
} lc_uvloop_work;

/* The types by which handles are recognised; forgets what was learned of another uvloop. Keeps references. */
void lc_uvloop_work_of_types(PyTypeObject *handle, PyTypeObject *timer);

lc_uvloop_type lc_uvloop_handle_type(void);

/* The word by which a place of the code tells what it runs; 0: it runs a TimerHandle, or is not learned yet. */
typedef struct {
    uint64_t word;
    bool is_method; /* a protocol's method or the like; else what should be a Handle */
} lc_uvloop_held;

/* The place that was asked about last; mostly the next callback comes from there, too. */
typedef struct {
    uintptr_t return_address;
    uint8_t index; /* of the word */
    bool is_method;
} lc_uvloop_place;

extern lc_uvloop_place lc_uvloop_last_place;

lc_uvloop_held lc_uvloop_find_other_held(const uintptr_t *words);

/* Reads none of the program's memory. */
static inline lc_uvloop_held lc_uvloop_find_held(const uintptr_t *words)
{
    if (__builtin_expect(words[LC_UVLOOP_RETURN] != lc_uvloop_last_place.return_address, 0)) {
        return lc_uvloop_find_other_held(words);
    }
    return (lc_uvloop_held){words[lc_uvloop_last_place.index], lc_uvloop_last_place.is_method};
}

/* `source`: of the running agent. Also learns. */
lc_uvloop_work lc_uvloop_find_work(const lc_cpython_source *source, PyObject *context, const uintptr_t *words);

#endif
