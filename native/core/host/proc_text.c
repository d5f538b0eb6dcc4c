#include "core/host/proc_text.h"

#include <string.h>

#include "core/flight/flight_format.h"

typedef struct {
    const char *at;
    const char *end;
} cursor;

static void skip_blanks(cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t')) {
        c->at++;
    }
}

static bool decimal(cursor *c, uint64_t *out)
{
    skip_blanks(c);
    const char *start = c->at;
    uint64_t value = 0;
    while (c->at < c->end && *c->at >= '0' && *c->at <= '9') {
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*c->at - '0'), &value)) {
            return false;
        }
        c->at++;
    }
    *out = value;
    return c->at != start;
}

static int hex_value(char h)
{
    return h >= '0' && h <= '9' ? h - '0' : h >= 'a' && h <= 'f' ? h - 'a' + 10 : -1;
}

static bool hexadecimal(cursor *c, uint64_t *out)
{
    skip_blanks(c);
    if (c->end - c->at < 3 || c->at[0] != '0' || c->at[1] != 'x') {
        return false;
    }
    c->at += 2;
    const char *start = c->at;
    uint64_t value = 0;
    while (c->at < c->end && hex_value(*c->at) >= 0) {
        value = value << 4 | (uint64_t)hex_value(*c->at++);
    }
    *out = value;
    return c->at != start;
}

static bool skip_words(cursor *c, int count)
{
    for (int i = 0; i < count; i++) {
        skip_blanks(c);
        if (c->at == c->end) {
            return false;
        }
        while (c->at < c->end && *c->at != ' ') {
            c->at++;
        }
    }
    return true;
}

bool lc_parse_stat(const char *text, size_t length, lc_stat_fields *out)
{
    /* Fields are counted from the last parenthesis: the name before it is the program's to choose. */
    const char *open = memchr(text, '(', length), *close = memrchr(text, ')', length);
    if (open == NULL || close == NULL || close < open) {
        return false;
    }
    out->name = open + 1;
    out->name_length = (size_t)(close - open - 1);
    cursor c = {close + 1, text + length};
    skip_blanks(&c);
    if (c.at == c.end) {
        return false;
    }
    out->state = *c.at++;
    /* Field numbers of proc(5): 3 state, 4 ppid ... 12 majflt ... 22 starttime ... 38 exit_signal. */
    const bool is_whole = decimal(&c, &out->parent) && skip_words(&c, 7) && decimal(&c, &out->major_faults) &&
                          skip_words(&c, 9) && decimal(&c, &out->start_time);
    out->exit_signal = 0;
    (void)(is_whole && skip_words(&c, 15) && decimal(&c, &out->exit_signal));
    return is_whole;
}

bool lc_parse_schedstat(const char *text, size_t length, lc_schedstat_fields *out)
{
    cursor c = {text, text + length};
    return decimal(&c, &out->on_cpu_ns) && decimal(&c, &out->run_queue_ns);
}

bool lc_syscall_says_running(const char *text, size_t length)
{
    return length >= 7 && memcmp(text, "running", 7) == 0;
}

bool lc_parse_syscall(const char *text, size_t length, lc_syscall_fields *out)
{
    cursor c = {text, text + length};
    uint64_t number;
    memset(out, 0, sizeof *out);
    out->number = LC_SYSCALL_RUNNING;
    if (lc_syscall_says_running(text, length)) {
        return true;
    }
    if (length >= 2 && text[0] == '-' && text[1] == '1') {
        return true;
    }
    if (!decimal(&c, &number) || number > INT32_MAX) {
        return false;
    }
    out->number = (int64_t)number;
    for (size_t i = 0; i < sizeof out->args / sizeof out->args[0]; i++) {
        if (!hexadecimal(&c, &out->args[i])) {
            return false;
        }
    }
    return true;
}

static bool labelled(const char *text, size_t length, const char *label, uint64_t *out)
{
    const char *found = memmem(text, length, label, strlen(label));
    if (found == NULL) {
        return false;
    }
    cursor c = {found + strlen(label), text + length};
    return decimal(&c, out);
}

bool lc_parse_switches(const char *text, size_t length, lc_switch_fields *out)
{
    /* The first label ends the second one too: the leading line feed tells them apart. */
    return labelled(text, length, "\nvoluntary_ctxt_switches:", &out->voluntary) &&
           labelled(text, length, "\nnonvoluntary_ctxt_switches:", &out->involuntary);
}

static bool scaled(uint64_t value, uint64_t unit, uint64_t *out)
{
    return !__builtin_mul_overflow(value, unit, out);
}

/* The number behind a label that begins a line. A number at the text's very end may have been cut:
 * refused. */
static bool line_labelled(const char *text, size_t length, const char *label, uint64_t *out)
{
    const size_t label_length = strlen(label);
    const char *line = text;
    const char *end = text + length;
    while (line < end) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        if (stop == NULL) {
            return false;
        }
        if ((size_t)(stop - line) > label_length && memcmp(line, label, label_length) == 0) {
            cursor c = {line + label_length, stop};
            return decimal(&c, out);
        }
        line = stop + 1;
    }
    return false;
}

bool lc_parse_cpu_line(const char *text, size_t length, lc_cpu_fields *out)
{
    enum { IDLE = 3, IOWAIT = 4, STEAL = 7, KNOWN = 4 };
    const char *stop = memchr(text, '\n', length);
    uint64_t idle = 0;
    int count = 0;
    *out = (lc_cpu_fields){0};
    if (stop == NULL || stop - text < 4 || memcmp(text, "cpu ", 4) != 0) {
        return false;
    }
    cursor c = {text + 4, stop};
    uint64_t value;
    for (; count <= STEAL && decimal(&c, &value); count++) {
        idle += count == IDLE || count == IOWAIT ? value : 0u;
        out->stolen_ticks += count == STEAL ? value : 0u;
        out->total_ticks += value;
    }
    out->busy_ticks = out->total_ticks - idle;
    return count >= KNOWN;
}

bool lc_parse_throttle(const char *text, size_t length, lc_throttle_fields *out)
{
    uint64_t value;
    *out = (lc_throttle_fields){0, 0};
    if (!line_labelled(text, length, "nr_throttled ", &out->periods)) {
        return false;
    }
    if (line_labelled(text, length, "throttled_usec ", &value)) {
        return scaled(value, 1000u, &out->ns);
    }
    return line_labelled(text, length, "throttled_time ", &out->ns);
}

bool lc_parse_pressure(const char *text, size_t length, uint64_t *total_ns)
{
    static const char label[] = " total=";
    const char *stop = memchr(text, '\n', length);
    if (stop == NULL || stop - text < 5 || memcmp(text, "some ", 5) != 0) {
        return false;
    }
    const char *found = memmem(text, (size_t)(stop - text), label, sizeof label - 1u);
    if (found == NULL) {
        return false;
    }
    cursor c = {found + sizeof label - 1u, stop};
    uint64_t microseconds;
    return decimal(&c, &microseconds) && scaled(microseconds, 1000u, total_ns);
}

bool lc_parse_available(const char *text, size_t length, uint64_t *bytes)
{
    uint64_t kibibytes;
    return line_labelled(text, length, "MemAvailable:", &kibibytes) && scaled(kibibytes, 1024u, bytes);
}

bool lc_parse_number(const char *text, size_t length, uint64_t *value)
{
    cursor c = {text, text + length};
    return decimal(&c, value) && c.at < c.end && *c.at == '\n';
}

bool lc_parse_has_quota(const char *text, size_t length)
{
    cursor c = {text, text + length};
    uint64_t value;
    return decimal(&c, &value) && value != 0;
}

/* Whether a comma-separated list, as "cpu,cpuacct", names the controller. */
static bool names(const char *list, const char *end, const char *controller)
{
    const size_t length = strlen(controller);
    while (list <= end) {
        const char *comma = memchr(list, ',', (size_t)(end - list));
        const char *stop = comma == NULL ? end : comma;
        if ((size_t)(stop - list) == length && memcmp(list, controller, length) == 0) {
            return true;
        }
        list = stop + 1;
    }
    return false;
}

static bool copy_path(const char *from, const char *stop, char *path, size_t room)
{
    const size_t length = (size_t)(stop - from);
    if (length == 0 || length >= room || *from != '/' || memchr(from, '\0', length) != NULL) {
        return false;
    }
    memcpy(path, from, length);
    path[length] = '\0';
    return true;
}

bool lc_parse_cgroup(const char *text, size_t length, const char *controller, char *path, size_t room)
{
    const char *end = text + length;
    for (const char *line = text; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        if (stop == NULL) {
            return false; /* cut */
        }
        /* "number:controllers:path", the path may hold colons */
        const char *first = memchr(line, ':', (size_t)(stop - line));
        const char *second = first ? memchr(first + 1, ':', (size_t)(stop - first - 1)) : NULL;
        if (second != NULL && names(first + 1, second, controller)) {
            return copy_path(second + 1, stop, path, room);
        }
        line = stop + 1;
    }
    return false;
}
