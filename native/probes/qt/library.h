/* Qt as it is loaded in this process: the few functions and places of QtCore that are needed, found by their symbols. */
#ifndef LOOPCANARY_QT_LIBRARY_H
#define LOOPCANARY_QT_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Names are those of the Itanium C++ ABI, which Qt 5 and 6 have in common. `this` of a method is its first argument. */
typedef struct {
    size_t notify_index;         /* of QCoreApplication::notify(QObject *, QEvent *) in the virtual table */
    size_t process_events_index; /* of QAbstractEventDispatcher::processEvents(flags) in its */
    size_t event_type_offset;    /* of the 16 bits of a QEvent's type; 0: not known */
    void **application;          /* QCoreApplication::self */
    void *(*application_dispatcher)(void);
    void *(*thread_dispatcher)(void *thread); /* NULL: of the calling thread */
    void (*add_pre_routine)(void (*routine)(void));
} lc_qt_library;

/* Looks in the loaded object of this path (a binding's QtCore module) and in what it is linked with. False with the
 * reason where something is missing or not what it must be; nothing is changed in any case. */
bool lc_qt_library_find(const char *path, lc_qt_library *out, const char **why_not);

#endif
