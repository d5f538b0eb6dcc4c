/* Virtual functions of single C++ objects, replaced: an object gets a copy of its class's virtual table
 * with one entry of ours. No memory of a library is written to, and other objects of the class keep their
 * table. A destructor sets the table that its class has: a patch ends with its object. Itanium C++ ABI.
 * Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Replaces the object's function of this place in its table. True where it is replaced, now or before.
 * False where its table is in no loaded object, there is no room, or other code has put another table over
 * ours: it stays as it is. */
bool lc_qt_patch_lay(void *object, size_t index, void *replacement);

bool lc_qt_patch_is_laid(const void *object);

/* What the object's function of this place was; also after the patch was taken back, for a thread inside the
 * replacement. NULL: it was never replaced. */
void *lc_qt_patch_original(const void *object, size_t index);

/* The object at this address, which is alive, may be a new one: it is, unless its calls still go to the
 * replacement. */
void lc_qt_patch_forget(const void *object);

/* The object, which is alive, gets the table back that it had, if it has ours. */
void lc_qt_patch_take_back(void *object);
