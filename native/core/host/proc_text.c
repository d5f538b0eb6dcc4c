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
        value = value * 10u + (uint64_t)(*c->at++ - '0');
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
    const char *close = memrchr(text, ')', length);
    if (close == NULL) {
        return false;
    }
    cursor c = {close + 1, text + length};
    skip_blanks(&c);
    if (c.at == c.end) {
        return false;
    }
    out->state = *c.at++;
    /* Field numbers of proc(5): 3 state ... 12 majflt ... 22 starttime. */
    return skip_words(&c, 8) && decimal(&c, &out->major_faults) && skip_words(&c, 9) &&
           decimal(&c, &out->start_time);
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
