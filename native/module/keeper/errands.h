/* Errands: what a command of the same user has done in a running program.
 *
 * The command puts a file beside the flight file and counts in the keeper's page (lc_keeper). The watchdog
 * sees that when a watched thread works next, and has Python read the file on a thread of ours. The page and
 * the file are hostile: at worst our Python code runs, often.
 */
#pragma once

#include <Python.h>
#include <stdbool.h>

/* lc_watchdog.run_errand: without the GIL. False: no thread could be made. */
bool lc_errand_run(void);

/* Adds on_errand(hook | None) and errand_at(monotonic_ns); GIL held. -1 with an exception. */
int lc_errands_add(PyObject *module);
