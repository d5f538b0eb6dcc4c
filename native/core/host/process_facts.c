#include "core/host/process_facts.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/host/proc_text.h"

static size_t read_file(const char *path, char *text, size_t room)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    const ssize_t got = read(fd, text, room);
    close(fd);
    return got < 0 ? 0 : (size_t)got;
}

uint64_t lc_process_start(pid_t pid)
{
    char text[1024], path[32] = "/proc/self/stat";
    lc_stat_fields fields;
    if (pid != 0) {
        snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    }
    const size_t length = read_file(path, text, sizeof text);
    return lc_parse_stat(text, length, &fields) ? fields.start_time : 0;
}

uint64_t lc_pid_namespace(void)
{
    struct stat facts;
    return stat("/proc/self/ns/pid", &facts) == 0 ? (uint64_t)facts.st_ino : 0;
}

lc_root_folder lc_process_root(void)
{
    struct stat facts;
    return stat("/", &facts) == 0 ? (lc_root_folder){facts.st_dev, facts.st_ino} : (lc_root_folder){0, 0};
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void lc_boot_id(uint8_t id[16])
{
    char text[64];
    unsigned digits = 0;
    const size_t length = read_file("/proc/sys/kernel/random/boot_id", text, sizeof text);
    memset(id, 0, 16);
    for (size_t i = 0; i < length && digits < 32; i++) {
        const int value = hex_digit(text[i]);
        if (value >= 0) {
            id[digits / 2] = (uint8_t)(id[digits / 2] << 4 | value);
            digits++;
        }
    }
}

uint64_t lc_spare_addresses(void)
{
    char pages[32] = "";
    struct rlimit allowed;
    if (getrlimit(RLIMIT_AS, &allowed) != 0 || allowed.rlim_cur == RLIM_INFINITY ||
        read_file("/proc/self/statm", pages, sizeof pages - 1u) == 0) {
        return UINT64_MAX;
    }
    const uint64_t kept = strtoull(pages, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE) + (UINT64_C(64) << 20);
    return allowed.rlim_cur > kept ? allowed.rlim_cur - kept : 0;
}
