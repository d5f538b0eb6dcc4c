/* The same source for the interpreter of another process, which neither helps nor knows: its memory is copied
 * by the reader, and nothing of it runs.
 *
 * What the in-process source asks the interpreter for comes from elsewhere here. Addresses of the exported
 * objects: the caller found them in the process's symbol tables. The layout: the table's column of the
 * process's version, with what that interpreter publishes of itself in its place. Locks: known by the names
 * of their types, when they are seen. There is no self-test by the public API; that the threads found are
 * threads of the process is the caller's to check.
 */
#pragma once

#include "cpython/source/cpython_source.h"

/* Addresses in the other process. `at.interp` is not needed. */
typedef struct {
    lc_interpreter_addresses at;
    uint64_t type_type;       /* PyType_Type */
    uint64_t descriptor_type; /* PyMethodDescr_Type */
    uint64_t reference_type;  /* _PyWeakref_RefType */
} lc_outside_addresses;

/* Opens the source for a process of this CPython version (PY_VERSION_HEX of that process). The reader must
 * outlive it. No Python, no GIL. False where that CPython cannot be read; *why_not then is one line for
 * people, with static lifetime, and nothing needs to be closed. */
bool lc_outside_open(lc_cpython_source *source, const lc_memory_reader *reader, uint64_t version_hex,
                     const lc_outside_addresses *addresses, const char **why_not);

/* The process's interpreters, at most `room`; answers how many. */
uint32_t lc_outside_interpreters(const lc_cpython_source *source, uint64_t *out, uint32_t room);

/* Learns what locks are from those that lie in frames of the threads of these interpreters. Bounded; may
 * be called again. */
void lc_outside_learn_locks(lc_cpython_source *source, const lc_outside_addresses *addresses,
                            const lc_thread_ref *threads, uint32_t count);
