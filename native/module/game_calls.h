/* The calls by which a game's thread shows frames, looks for events and waits: GameCalls(hooks, work).
 *
 * A game has no loop that could be hooked. What lies between two of these calls is a callback, called `work`; the call
 * itself is the loop's wait, told to `hooks` (a LoopHooks). One thread is watched: the first that shows a frame, from then
 * on until over() or its end. The calls of the others go through, and so do, before that, all but the one that shows a frame.
 *
 *     stand_in(function, role) -> what stands in its place, a PatchedBuiltin:
 *         "flip"   shows a frame
 *         "look"   takes events from the queue
 *         "await"  the same, and waits for one
 *         "wait"   waits
 *         "modal"  lets somebody else's loop run
 *       or a PatchedFunction, of methods of a type whose instances hold the library's object as `_real`:
 *         "tick"   waits for the time of the next frame; its first argument is the rate that the game aims at
 *     tell(beat | None), whose methods hear of the rest, each only where there is something to hear:
 *         began()                                     the first frame is about to be shown
 *         aims_at(rate)                               another rate than before
 *         look_at_screen()                            once a second
 *         paused(now_ns)                              three ticks and no frame
 *         waited(begin_ns, end_ns)                    for an event
 *         modal_over()
 *         looked(found, begin_ns, since_ns, now_ns) -> whether input is pending; what was found may have come
 *                                                     since `since_ns`
 *         handled(now_ns)                             what was pending
 *     on_shown(function | None)    function(now_ns) is called after each frame
 *     on_input(types)              the numbers of the events that `looked` shall hear of
 *     is_watching() -> bool
 *     over()                       nothing is watched any more; the watched thread ends its work: now, or at its next call
 *
 * All of it under the GIL. Times are time.monotonic_ns(). Of what the beat raises, an Exception is dropped. What the
 * library's function is given, gives and raises is as if it were called itself.
 */
#ifndef LOOPCANARY_GAME_CALLS_H
#define LOOPCANARY_GAME_CALLS_H

#include <Python.h>

/* Adds the type GameCalls to the module; negative with an exception set where that fails. */
int lc_game_calls_add(PyObject *module);

#endif
