/* Memory of one thread on the heap, freed with its thread: thread-local memory of a library that reaches
 * it directly, as this one does (thread_lane.h), is scarce. */
#pragma once

#include <pthread.h>
#include <stdlib.h>

/* Zeroed; the key's destructor frees it. NULL: there is none. */
static inline void *lc_thread_memory(pthread_key_t key, size_t bytes)
{
    void *fresh = calloc(1, bytes);
    if (fresh != NULL && pthread_setspecific(key, fresh) != 0) {
        free(fresh);
        return NULL;
    }
    return fresh;
}
