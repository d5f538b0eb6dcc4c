#include "probes/qt/patch.h"

#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MAX 32u
/* offset to the top, type, and whatever a class with virtual bases has in front of them */
#define WORDS_BEFORE 8u
#define WORDS_MAX 512u /* of functions: no class of Qt has as many */

typedef void *word;

/* Read without a lock by a thread inside a replacement: a row's original is there before its object is. */
typedef struct {
    void *object;
    word *original;
    word *copy;
    size_t index; /* of the replacement */
} patch_row;

static patch_row rows[ROWS_MAX];
static size_t row_count;
static size_t next_row; /* to be used again where all are taken */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

#define TABLE_OF(object) ((word **)(object))

static patch_row *find(const void *object)
{
    const size_t count = __atomic_load_n(&row_count, __ATOMIC_ACQUIRE);
    for (size_t i = 0; i < count; i++) {
        if (__atomic_load_n(&rows[i].object, __ATOMIC_ACQUIRE) == object) {
            return &rows[i];
        }
    }
    return NULL;
}

typedef struct {
    uintptr_t address;
    uintptr_t begin;
    uintptr_t end; /* of the segment of a loaded object that the address is in; 0: in none */
} segment;

static int look(struct dl_phdr_info *info, size_t size, void *context)
{
    segment *wanted = context;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        const uintptr_t begin = info->dlpi_addr + header->p_vaddr;
        if (header->p_type == PT_LOAD && wanted->address >= begin &&
            wanted->address < begin + header->p_memsz) {
            wanted->begin = begin;
            wanted->end = begin + header->p_memsz;
            return 1;
        }
    }
    return 0;
}

/* Where a table ends is not known: as much is copied as any table has, or as there is. What is too much is
 * never called. */
static word *copy_of(word *table)
{
    for (size_t i = 0; i < row_count; i++) {
        if (rows[i].original == table && rows[i].copy != NULL) {
            return rows[i].copy;
        }
    }
    segment found = {.address = (uintptr_t)table};
    if (dl_iterate_phdr(look, &found) == 0) {
        return NULL;
    }
    const size_t before = ((uintptr_t)table - found.begin) / sizeof(word);
    const size_t after = (found.end - (uintptr_t)table) / sizeof(word);
    const size_t head = before < WORDS_BEFORE ? before : WORDS_BEFORE;
    const size_t body = after < WORDS_MAX ? after : WORDS_MAX;
    /* for good: calls may be in it at any time */
    word *copy = malloc((WORDS_BEFORE + WORDS_MAX) * sizeof *copy);
    if (copy == NULL) {
        return NULL;
    }
    memset(copy, 0, (WORDS_BEFORE + WORDS_MAX) * sizeof *copy);
    memcpy(copy + WORDS_BEFORE - head, table - head, (head + body) * sizeof *copy);
    return copy + WORDS_BEFORE;
}

/* Where all rows are taken, one whose object is forgotten is used again. */
static patch_row *fresh_row(void)
{
    if (row_count < ROWS_MAX) {
        return &rows[row_count];
    }
    for (size_t tries = 0; tries < ROWS_MAX; tries++) {
        patch_row *row = &rows[next_row++ % ROWS_MAX];
        if (row->object == NULL) {
            return row;
        }
    }
    return NULL;
}

static bool lay(void *object, size_t index, void *replacement)
{
    patch_row *row = find(object);
    word *table = *TABLE_OF(object);
    if (row != NULL && (table == row->copy || table != row->original)) {
        return table == row->copy;
    }
    if (index >= WORDS_MAX) {
        return false;
    }
    if (row == NULL) {
        word *copy = copy_of(table);
        row = copy != NULL ? fresh_row() : NULL;
        if (row == NULL) {
            return false;
        }
        row->original = table;
        row->copy = copy;
        row->copy[index] = replacement;
        row->index = index;
        __atomic_store_n(&row->object, object, __ATOMIC_RELEASE);
        if (row == &rows[row_count]) {
            __atomic_store_n(&row_count, row_count + 1u, __ATOMIC_RELEASE);
        }
    }
    __atomic_store_n(TABLE_OF(object), row->copy, __ATOMIC_RELEASE);
    return true;
}

bool lc_qt_patch_lay(void *object, size_t index, void *replacement)
{
    pthread_mutex_lock(&mutex);
    const bool laid = lay(object, index, replacement);
    pthread_mutex_unlock(&mutex);
    return laid;
}

bool lc_qt_patch_is_laid(const void *object)
{
    const patch_row *row = find(object);
    return row != NULL && __atomic_load_n((word *const *)object, __ATOMIC_ACQUIRE) == row->copy;
}

void *lc_qt_patch_original(const void *object, size_t index)
{
    const patch_row *row = find(object);
    return row != NULL ? row->original[index] : NULL;
}

void lc_qt_patch_forget(const void *object)
{
    pthread_mutex_lock(&mutex);
    patch_row *row = find(object);
    if (row != NULL && (*TABLE_OF(object))[row->index] != row->copy[row->index]) {
        __atomic_store_n(&row->object, NULL, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&mutex);
}

void lc_qt_patch_take_back(void *object)
{
    pthread_mutex_lock(&mutex);
    const patch_row *row = find(object);
    if (row != NULL && *TABLE_OF(object) == row->copy) {
        __atomic_store_n(TABLE_OF(object), row->original, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&mutex);
}
