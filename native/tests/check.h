/* CHECK(condition): says where, and ends the program with 1. */
#ifndef LOOPCANARY_CHECK_H
#define LOOPCANARY_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                              \
    do {                                                                              \
        if (!(condition)) {                                                           \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);   \
            exit(1);                                                                  \
        }                                                                             \
    } while (0)

#endif
