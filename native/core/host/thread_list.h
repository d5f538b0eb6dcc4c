/* The threads of this process, as the kernel lists them. */
#pragma once

#include <stdint.h>

typedef struct {
    uint32_t at, length; /* length 0: they could not be listed, or do not fit: more than some 120 */
    _Alignas(8) char entries[4096];
} lc_thread_list;

/* No allocation, no lock. */
void lc_thread_list_read(lc_thread_list *out);
/* The next one's id; 0: there is no other. */
uint64_t lc_thread_list_next(lc_thread_list *list);
