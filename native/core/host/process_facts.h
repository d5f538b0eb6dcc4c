/* What identifies this process beyond its number, which is reused. Any thread; opens files. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* Field 22 of /proc/PID/stat (proc(5)): clock ticks since boot; 0 unknown. `pid`: 0 for this process. */
uint64_t lc_process_start(pid_t pid);
/* Inode of /proc/self/ns/pid; 0 unknown. */
uint64_t lc_pid_namespace(void);
/* /proc/sys/kernel/random/boot_id as 16 bytes; zeros unknown. */
void lc_boot_id(uint8_t id[16]);
typedef struct {
    uint64_t device, inode;
} lc_root_folder;
/* Which folder is `/` for this process; zeros unknown. */
lc_root_folder lc_process_root(void);
/* Bytes of address space that we may take, so that the program keeps 64 MB of what ulimit -v leaves it;
 * UINT64_MAX: any, or unknown. */
uint64_t lc_spare_addresses(void);
