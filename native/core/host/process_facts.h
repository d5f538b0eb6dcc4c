/* What identifies this process beyond its number, which is reused. Any thread; opens files. */
#ifndef LOOPCANARY_PROCESS_FACTS_H
#define LOOPCANARY_PROCESS_FACTS_H

#include <stdint.h>

/* Field 22 of /proc/self/stat (proc(5)): clock ticks since boot; 0 unknown. */
uint64_t lc_process_start(void);
/* Inode of /proc/self/ns/pid; 0 unknown. */
uint64_t lc_pid_namespace(void);
/* /proc/sys/kernel/random/boot_id as 16 bytes; zeros unknown. */
void lc_boot_id(uint8_t id[16]);

#endif
