/* A fuzz target is one function of bytes. Built by itself with clang's -fsanitize=fuzzer it is libFuzzer's; a
 * program that replays the corpus (native/tests/cpython/walker/test_fuzz_corpus.c) includes them all, each
 * under its name. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef LC_FUZZ_REPLAY
#define LC_FUZZ_TARGET(name) static int lc_fuzz_##name(const uint8_t *data, size_t size)
#else
#define LC_FUZZ_TARGET(name)                                                                                 \
    int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);                                            \
    int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
#endif

#define LC_FUZZ_HOLDS(condition) ((condition) ? (void)0 : abort())
