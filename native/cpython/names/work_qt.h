/* The event that Qt delivers, as the word that a lane keeps of its work. */
#ifndef LOOPCANARY_WORK_QT_H
#define LOOPCANARY_WORK_QT_H

#include "cpython/source/cpython_source.h"

/* No object's address ends in this. Above it the receiver's address, and in the upper 16 bits the event's type: addresses
 * of programs have none set (x86-64 with four levels of pages, aarch64 with 48 bits). */
#define LC_WORK_QT UINT64_C(1)
#define LC_WORK_QT_TAG_MASK UINT64_C(7)
#define LC_WORK_QT_RECEIVER_MASK UINT64_C(0x0000FFFFFFFFFFF8)

/* Of lc_work_kind.key: the address of a C++ type's name; the owner is then the event's type. */
#define LC_KIND_QT (UINT64_C(1) << 62)

#define LC_QT_TYPE_UNKNOWN 0u
#define LC_QT_TYPE_DEFERRED_DELETE 52u

/* The word of an event that is over: one that deletes its receiver leaves none to be named. Pure. */
static inline uint64_t lc_qt_work_ended(uint64_t work)
{
    return work >> 48 == LC_QT_TYPE_DEFERRED_DELETE ? work & ~LC_WORK_QT_RECEIVER_MASK : work;
}

static inline uint64_t lc_qt_work(uint64_t receiver, uint16_t type)
{
    return (uint64_t)type << 48 | (receiver & LC_WORK_QT_RECEIVER_MASK) | LC_WORK_QT;
}

static inline bool lc_is_qt_work(uint64_t work) { return (work & LC_WORK_QT_TAG_MASK) == LC_WORK_QT; }

/* "QPushButton: MouseButtonRelease", into LC_STRING_MAX bytes. What cannot be read is left out. */
lc_text lc_qt_work_name(const lc_cpython_source *source, uint64_t work, char *into);
lc_text lc_qt_kind_name(const lc_cpython_source *source, lc_work_kind kind, char *into);

/* The name of an event's type, NULL where it has none. Pure. */
const char *lc_qt_event_name(uint32_t type);

/* The class that a C++ type's name (Itanium's mangling) tells, without what bindings put around it: where it begins in
 * `name`, and its length; 0: none. Pure. */
uint32_t lc_qt_class_name(const char *name, uint32_t bytes, const char **begin);

#endif
