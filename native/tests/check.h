/* What every C test is made of. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* CHECK(condition): says where, and ends the program with 1. */
#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                          \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

/* What no wait of a test takes, however crowded the machine is: it hangs. Less than ctest waits for the whole test. */
#define HANG_NS UINT64_C(600000000000)

static void (*tests_of_this_file[64])(void);
static unsigned test_count;

/* TEST(name) { ... }: run_tests() runs those of the file, in their order in it. */
#define TEST(name)                                                                                           \
    static void name(void);                                                                                  \
    __attribute__((constructor)) static void add_##name(void) { tests_of_this_file[test_count++] = name; }   \
    static void name(void)

/* 0: what main answers. */
static inline int run_tests(void)
{
    CHECK(test_count > 0);
    for (unsigned i = 0; i < test_count; i++) {
        tests_of_this_file[i]();
    }
    return 0;
}
