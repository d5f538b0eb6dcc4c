#include "core/host/process_facts.h"

#include <fcntl.h>
#include <string.h>
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

uint64_t lc_process_start(void)
{
    char text[1024];
    lc_stat_fields fields;
    const size_t length = read_file("/proc/self/stat", text, sizeof text);
    return lc_parse_stat(text, length, &fields) ? fields.start_time : 0;
}

uint64_t lc_pid_namespace(void)
{
    struct stat facts;
    return stat("/proc/self/ns/pid", &facts) == 0 ? (uint64_t)facts.st_ino : 0;
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
