/* The texts of /proc as numbers: real lines, and texts that are cut or hostile. */
#include "core/host/proc_text.h"

#include <string.h>

#include "tests/check.h"
#include "core/flight/flight_format.h"

TEST(stat_is_read_behind_a_name_with_parentheses)
{
    const char text[] = "42 (a) R (b) c) S 1 2 3 4 5 6 7 8 99 10 11 12 13 14 15 16 17 18 777 20\n";
    lc_stat_fields f;
    CHECK(lc_parse_stat(text, strlen(text), &f));
    CHECK(f.state == 'S' && f.major_faults == 99 && f.start_time == 777);
}

TEST(every_cut_of_a_stat_line_is_refused_or_whole)
{
    const char text[] = "42 (name) S 1 2 3 4 5 6 7 8 99 10 11 12 13 14 15 16 17 18 777";
    for (size_t length = 0; length < strlen(text); length++) {
        lc_stat_fields f = {0};
        if (lc_parse_stat(text, length, &f)) {
            CHECK(f.start_time <= 777);
        }
    }
}

TEST(schedstat_is_two_sums)
{
    lc_schedstat_fields f;
    CHECK(lc_parse_schedstat("123456789 42 7\n", 15, &f));
    CHECK(f.on_cpu_ns == 123456789 && f.run_queue_ns == 42);
    CHECK(!lc_parse_schedstat("12", 2, &f));
    CHECK(!lc_parse_schedstat("", 0, &f));
}

TEST(syscall_has_three_forms)
{
    lc_syscall_fields f;
    const char sleeping[] = "230 0x1 0x0 0x7ffd00 0x0 0x0 0xfe 0x7ffd00 0x7f00\n";
    CHECK(lc_parse_syscall("running\n", 8, &f) && f.number == LC_SYSCALL_RUNNING);
    CHECK(lc_parse_syscall("-1 0x7ff 0x7f\n", 14, &f) && f.number == LC_SYSCALL_RUNNING);
    CHECK(lc_parse_syscall(sleeping, strlen(sleeping), &f));
    CHECK(f.number == 230 && f.args[0] == 1 && f.args[2] == 0x7ffd00 && f.args[5] == 0xfe);
    CHECK(!lc_parse_syscall("230 1 2", 7, &f));
    CHECK(!lc_parse_syscall("230 0x1 0x2 0x3", 15, &f));
    CHECK(!lc_parse_syscall("99999999999 0x1 0x2 0x3", 23, &f));
}

TEST(switches_are_told_apart)
{
    const char text[] = "Name:\tx\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t34\n";
    lc_switch_fields f;
    CHECK(lc_parse_switches(text, strlen(text), &f));
    CHECK(f.voluntary == 12 && f.involuntary == 34);
    CHECK(!lc_parse_switches(text, 30, &f));
}

int main(void) { return run_tests(); }
