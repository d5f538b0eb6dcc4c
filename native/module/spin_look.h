/* Work that asks for itself anew each time, so that the loop never waits: a callback that calls call_soon with itself, a
 * task of `await asyncio.sleep(0)`, a greenlet of `gevent.sleep(0)`.
 *
 * Many short turns are no stall. While a thread is at work for most of the time, the watchdog asks for the tally of one
 * turn now and then (spin_pace.h); what runs in that turn is told here. Work spins that was there at each look for a second
 * and more, where all waits in between were looks without patience. A service under load has such waits, too: there events
 * come with most looks, and a look that found one proves nothing, but of work that came twice in its turn.
 *
 * GIL held, the thread that owns the lane. No exception comes out of these.
 */
#ifndef LOOPCANARY_SPIN_LOOK_H
#define LOOPCANARY_SPIN_LOOK_H

#include <Python.h>

#include "lane.h"

/* From now on turns of this lane are looked at. Idempotent. */
void lc_spin_look_at(const lc_lane *lane);

/* What tells work of one turn from work of another, though objects are made anew: its task; a method's object and
 * function; what a partial calls. Follows live objects. */
uint64_t lc_spin_identity(PyObject *callable);

/* Work of a turn that is tallied. `spins` (or NULL) hears of one that spins, at most once a second: (work, begin_ns, end_ns,
 * rounds). */
void lc_spin_look_note(lc_lane *lane, uint64_t identity, PyObject *work, PyObject *spins);

/* In a turn that is tallied something ran that the loop did not owe to itself. */
void lc_spin_look_note_event(lc_lane *lane);

#endif
