#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <semaphore.h>
#include <stddef.h>
#include <string.h>
#include <structmember.h>

#include "cpython/locks/lock_parts.h"
#include "cpython/objects/attributes.h"
#include "cpython/objects/objects.h"
#include "cpython/walker/frame_values.h"

/* SemLockObject, Modules/_multiprocessing/semaphore.c, the same from 3.11 to 3.15. It is private, but its
 * members for Python say where they are: these are compared with the type of each process that is looked
 * at. Between the first two lie an unsigned long and an int: only in this order do they fit there. */
enum {
    SEMLOCK_HANDLE = 16,   /* sem_t *, in memory that the processes share */
    SEMLOCK_LAST_TID = 24, /* ident of the thread that acquired it last */
    SEMLOCK_COUNT = 32,    /* of acquires by this process, less its releases */
    SEMLOCK_MAXVALUE = 36,
    SEMLOCK_KIND = 40,
    SEMLOCK_NAME = 48,
    SEMLOCK_BYTES = 56
};
enum { KIND_RECURSIVE = 0, KIND_SEMAPHORE = 1 }; /* of a Lock, too: one of which there is one */

/* Public, and the same in all versions that there is a layout for. */
enum { TYPE_MEMBERS = 240, MEMBER_NAME = 0, MEMBER_OFFSET = 16, MEMBER_BYTES = 40 };
_Static_assert(offsetof(PyTypeObject, tp_members) == TYPE_MEMBERS, "object.h");
_Static_assert(offsetof(PyMemberDef, name) == MEMBER_NAME && offsetof(PyMemberDef, offset) == MEMBER_OFFSET &&
                   sizeof(PyMemberDef) == MEMBER_BYTES,
               "structmember.h, descrobject.h");

static const char TYPE_NAME[] = "_multiprocessing.SemLock";

static bool has_member(const lc_cpython_source *source, uint64_t type, const char *name, uint64_t offset)
{
    static const uint32_t members = 4;
    const uint64_t first = lc_word_at(source, type + TYPE_MEMBERS);
    for (uint32_t i = 0; first != 0 && i < members; i++) {
        const uint64_t member = first + (uint64_t)i * MEMBER_BYTES;
        if (lc_c_string_is(source, lc_word_at(source, member + MEMBER_NAME), name)) {
            return lc_word_at(source, member + MEMBER_OFFSET) == offset;
        }
    }
    return false;
}

static bool looks_like_semlock(const lc_cpython_source *source, uint64_t type)
{
    return lc_c_string_is(source, lc_word_at(source, type + source->layout.type_name), TYPE_NAME) &&
           lc_word_at(source, type + source->layout.type_basic_size) == SEMLOCK_BYTES &&
           has_member(source, type, "handle", SEMLOCK_HANDLE) &&
           has_member(source, type, "maxvalue", SEMLOCK_MAXVALUE) &&
           has_member(source, type, "kind", SEMLOCK_KIND) && has_member(source, type, "name", SEMLOCK_NAME);
}

/* The type lives as long as its interpreter. Each interpreter has one: the last that was seen is kept. */
static bool is_semlock_type(lc_cpython_source *source, uint64_t type)
{
    if (type == 0 || type == source->locks.types[LC_TYPE_SEMLOCK]) {
        return type != 0;
    }
    if (!looks_like_semlock(source, type)) {
        return false;
    }
    source->locks.types[LC_TYPE_SEMLOCK] = type;
    return true;
}

static int32_t number_at(const lc_cpython_source *source, uint64_t address, int32_t unread)
{
    int32_t value = unread;
    return lc_read(source->reader, address, &value, sizeof value) ? value : unread;
}

static lc_lock_kind kind_of(const lc_cpython_source *source, uint64_t lock)
{
    const int32_t kind = number_at(source, lock + SEMLOCK_KIND, -1);
    if (kind == KIND_RECURSIVE) {
        return LC_LOCK_SHARED_RECURSIVE;
    }
    if (kind != KIND_SEMAPHORE) {
        return LC_LOCK_NONE;
    }
    return number_at(source, lock + SEMLOCK_MAXVALUE, 0) == 1 ? LC_LOCK_SHARED : LC_LOCK_SHARED_SEMAPHORE;
}

static bool sleeps_in(const lc_cpython_source *source, uint64_t object, uint64_t futex)
{
    const uint64_t semaphore = object == 0 ? 0 : lc_word_at(source, object + SEMLOCK_HANDLE);
    return semaphore != 0 && futex >= semaphore && futex - semaphore < sizeof(sem_t);
}

lc_lock_kind lc_semlock_behind(lc_cpython_source *source, uint64_t slot, uint64_t futex, uint64_t *lock)
{
    *lock = slot;
    if (!sleeps_in(source, slot, futex)) {
        const uint64_t type = lc_type_at(source, slot);
        if (type == 0 || type != source->at.cfunction_type) {
            return LC_LOCK_NONE;
        }
        *lock = lc_word_at(source, slot + source->layout.cfunction_self);
        if (!sleeps_in(source, *lock, futex)) {
            return LC_LOCK_NONE;
        }
    }
    return is_semlock_type(source, lc_type_at(source, *lock)) ? kind_of(source, *lock) : LC_LOCK_NONE;
}

/* A release posts the semaphore before it lowers the count: between the two the count is still that of a
 * held lock. The value is in glibc the low half of the first word, in musl 31 bits of it. */
static bool is_free(const lc_cpython_source *source, uint64_t lock)
{
    const int32_t value = number_at(source, lc_word_at(source, lock + SEMLOCK_HANDLE), INT32_MAX);
    return (value & INT32_MAX) != 0;
}

uint64_t lc_semlock_owner(const lc_cpython_source *source, uint64_t lock, lc_lock_kind kind)
{
    const int32_t count = number_at(source, lock + SEMLOCK_COUNT, 0);
    /* Two acquires of a Lock without a release by this process: another one has released it. */
    const bool is_held = kind == LC_LOCK_SHARED_RECURSIVE ? count > 0 : kind == LC_LOCK_SHARED && count == 1;
    return is_held && !is_free(source, lock) ? lc_word_at(source, lock + SEMLOCK_LAST_TID) : 0;
}

bool lc_semlock_is_exit(lc_cpython_source *source, uint64_t function, uint64_t self, uint64_t lock)
{
    if (lc_type_at(source, function) != source->at.function_type) {
        return false;
    }
    const uint64_t qualname = lc_word_at(source, function + source->layout.function_qualname);
    if (lc_str_is(source, qualname, "SemLock.__exit__")) {
        return lc_attribute(source, self, "_semlock") == lock;
    }
    return lc_str_is(source, qualname, "Condition.__exit__") &&
           lc_attribute(source, lc_attribute(source, self, "_lock"), "_semlock") == lock;
}
