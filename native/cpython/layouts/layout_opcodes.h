/* What a frame does, by the instruction that it is at: from 3.14 on, where no word of the frame tells it. */
#ifndef LOOPCANARY_LAYOUT_OPCODES_H
#define LOOPCANARY_LAYOUT_OPCODES_H

#include <stdint.h>

enum {
    LC_OPCODE_RUNS = 0,   /* is no call, or one of C code */
    LC_OPCODE_CALLS = 1,  /* calls Python code, without C between */
    LC_OPCODE_EITHER = 2, /* calls, what is not known */
    LC_OPCODE_ENDS = 3    /* the frame ends with it, or is suspended */
};

/* By opcode, for the CPython this is compiled for; NULL before 3.14. */
extern const uint8_t *const lc_opcodes;

#endif
