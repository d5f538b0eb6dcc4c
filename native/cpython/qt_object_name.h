/* What the program calls an object of Qt's (QObject::objectName), read as other threads' memory is: nothing of Qt is called, for
 * the object is another thread's, and may be gone.
 *
 * QObject -> its private part -> what few objects have, made when it is first needed -> the name. Where these are differs
 * between Qt's versions: it is learned from objects whose names are known. */
#ifndef LOOPCANARY_QT_OBJECT_NAME_H
#define LOOPCANARY_QT_OBJECT_NAME_H

#include "cpython_source.h"

#define LC_QT_OBJECT_NAME_BYTES 128u

/* An object that nobody changes meanwhile, and its name. */
typedef struct {
    uint64_t object;
    const uint16_t *name; /* UTF-16 */
    uint32_t units;       /* 8 to 40 */
} lc_qt_named;

/* Learns where names are: what fits both objects. False: nothing does, and nothing has a name. One thread at a time. */
bool lc_qt_learn_object_names(const lc_cpython_source *source, const lc_qt_named known[2]);
/* Names are not looked at any more. Any thread. */
void lc_qt_forget_object_names(void);

/* UTF-8, cut to LC_QT_OBJECT_NAME_BYTES; the number of bytes. 0: it has none, or one that Qt itself gave it. Quotation marks and what
 * does not print are replaced. Any thread; may read nonsense where the object is gone. */
uint32_t lc_qt_object_name(const lc_cpython_source *source, uint64_t object, char *into);

#endif
