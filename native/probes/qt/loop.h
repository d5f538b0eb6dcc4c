/* Qt's loops: each iteration of a thread's event dispatcher, and each event that the application delivers in it.
 *
 * Two virtual functions are replaced (probes/qt/patch.h): QCoreApplication::notify, through which every event goes to its receiver,
 * and QAbstractEventDispatcher::processEvents, of which every loop is made: exec(), modal dialogs, menus, drags,
 * processEvents(). An iteration is a turn, or two with the wait between them (wait_hook.h). An event is a callback;
 * events that are sent while it is handled are a part of it. Where an iteration runs inside a callback, the callback is judged
 * up to there, and goes on afterwards as one of the same name.
 *
 * Watched are the application's own thread, and threads whose loop Python code runs. A QThread whose loop Qt runs, with
 * objects moved to it, is where programs put work that takes long: it is not watched.
 *
 * It runs without the GIL, which is taken once for each thread and engine, to get the lane.
 */
#ifndef LOOPCANARY_QT_LOOP_H
#define LOOPCANARY_QT_LOOP_H

#include <Python.h>

/* Calls of Python; all under the GIL.
 *
 * qt_install(path, loop_seen) -> None | str: `path` of a binding's QtCore module, `loop_seen` is called when a thread gets its
 * lane, and raises nothing. Covers applications that are made later. A str: why it cannot be done. Idempotent.
 * qt_uninstall(): takes back what is still ours. */
PyObject *lc_qt_install(PyObject *module, PyObject *args);
PyObject *lc_qt_uninstall(PyObject *module, PyObject *unused);

#endif
