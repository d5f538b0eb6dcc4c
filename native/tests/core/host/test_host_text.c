/* What /proc, PSI and cgroups say of the host: real texts, cut ones, hostile ones. */
#include "core/host/proc_text.h"

#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

#define TEXT(t) (t), strlen(t)

TEST(the_cpu_line_is_all_but_idle_and_iowait)
{
    lc_cpu_fields f;
    CHECK(lc_parse_cpu_line(TEXT("cpu  100 20 30 1000 50 6 7 8 90 10\ncpu0 1 2 3 4\n"), &f));
    CHECK(f.busy_ticks == 100 + 20 + 30 + 6 + 7 + 8); /* guest time is in user's already */
    CHECK(f.total_ticks == f.busy_ticks + 1050);
    CHECK(f.stolen_ticks == 8);
    CHECK(lc_parse_cpu_line(TEXT("cpu  1 2 3 4\n"), &f) && f.total_ticks == 10 && f.stolen_ticks == 0);
}

TEST(a_cpu_line_that_is_none_is_refused)
{
    lc_cpu_fields f;
    CHECK(!lc_parse_cpu_line(TEXT("cpu  1 2 3\n"), &f));
    CHECK(!lc_parse_cpu_line(TEXT("cpu0 1 2 3 4 5\n"), &f));
    CHECK(!lc_parse_cpu_line(TEXT("cpu  1 2 3 4 5 6 7"), &f)); /* cut: the last number may be longer */
    CHECK(!lc_parse_cpu_line(TEXT(""), &f));
    CHECK(!lc_parse_cpu_line(TEXT("cpu  99999999999999999999 2 3 4\n"), &f));
}

TEST(throttling_of_both_versions_of_cgroups)
{
    lc_throttle_fields f;
    CHECK(lc_parse_throttle(TEXT("usage_usec 11\nuser_usec 7\nsystem_usec 4\nnr_periods 90\nnr_throttled 12\n"
                                 "throttled_usec 3456\nnr_bursts 0\nburst_usec 0\n"),
                            &f));
    CHECK(f.periods == 12 && f.ns == 3456000);
    CHECK(lc_parse_throttle(TEXT("nr_periods 90\nnr_throttled 5\nthrottled_time 777\n"), &f));
    CHECK(f.periods == 5 && f.ns == 777);
}

TEST(a_cgroup_without_a_quota_tells_of_no_throttling)
{
    lc_throttle_fields f;
    CHECK(!lc_parse_throttle(TEXT("usage_usec 11\nuser_usec 7\nsystem_usec 4\n"), &f));
    CHECK(!lc_parse_throttle(TEXT("nr_throttled 5\n"), &f));
    CHECK(!lc_parse_throttle(TEXT("xnr_throttled 5\nthrottled_usec 1\n"), &f)); /* a label begins its line */
    CHECK(!lc_parse_throttle(TEXT("nr_throttled 5\nthrottled_usec 18446744073709551615\n"), &f));
}

TEST(pressure_is_the_total_of_some)
{
    uint64_t ns;
    CHECK(lc_parse_pressure(TEXT("some avg10=0.12 avg60=3.00 avg300=0.00 total=45678\n"
                                 "full avg10=0.00 avg60=0.00 avg300=0.00 total=99\n"),
                            &ns));
    CHECK(ns == 45678000);
    CHECK(!lc_parse_pressure(TEXT("full avg10=0.00 avg60=0.00 avg300=0.00 total=99\n"), &ns));
    CHECK(!lc_parse_pressure(TEXT("some avg10=0.12 avg60=3.00 avg300=0.00\nfull total=9\n"), &ns));
    CHECK(!lc_parse_pressure(TEXT("some total=12"), &ns));
}

TEST(memory_is_told_in_bytes)
{
    uint64_t bytes;
    CHECK(lc_parse_available(
        TEXT("MemTotal:       32000 kB\nMemFree: 1 kB\nMemAvailable:   2048 kB\nBuffers: 3 kB\n"), &bytes));
    CHECK(bytes == 2048u * 1024u);
    CHECK(!lc_parse_available(TEXT("MemTotal: 32000 kB\nMemFree: 1 kB\n"), &bytes)); /* kernels before 3.14 */
    CHECK(lc_parse_number(TEXT("68096000\n"), &bytes) && bytes == 68096000);
    CHECK(!lc_parse_number(TEXT("680960"), &bytes));
    CHECK(!lc_parse_number(TEXT("max\n"), &bytes));
}

TEST(quotas_of_both_versions_of_cgroups)
{
    CHECK(lc_parse_has_quota(TEXT("50000 100000\n")) && lc_parse_has_quota(TEXT("20000\n")));
    CHECK(!lc_parse_has_quota(TEXT("max 100000\n")) && !lc_parse_has_quota(TEXT("-1\n")));
    CHECK(!lc_parse_has_quota(TEXT("")) && !lc_parse_has_quota(TEXT("0\n")));
}

static const char hybrid[] =
    "12:cpu,cpuacct:/docker/ab:cd\n4:memory:/docker/mem\n1:name=systemd:/init\n0::/unified\n";

TEST(the_cgroup_of_a_controller_is_found)
{
    char path[32];
    CHECK(lc_parse_cgroup(TEXT(hybrid), "cpu", path, sizeof path) && strcmp(path, "/docker/ab:cd") == 0);
    CHECK(lc_parse_cgroup(TEXT(hybrid), "cpuacct", path, sizeof path) && strcmp(path, "/docker/ab:cd") == 0);
    CHECK(lc_parse_cgroup(TEXT(hybrid), "memory", path, sizeof path) && strcmp(path, "/docker/mem") == 0);
    CHECK(lc_parse_cgroup(TEXT(hybrid), "", path, sizeof path) && strcmp(path, "/unified") == 0);
    CHECK(!lc_parse_cgroup(TEXT(hybrid), "pids", path, sizeof path));
    CHECK(!lc_parse_cgroup(TEXT(hybrid), "cpua", path, sizeof path));
}

TEST(a_path_that_does_not_fit_or_is_none_is_refused)
{
    char path[32];
    CHECK(!lc_parse_cgroup(TEXT("0::/a/path/that/is/longer/than/32/bytes\n"), "", path, sizeof path));
    CHECK(!lc_parse_cgroup(TEXT("0::relative\n"), "", path, sizeof path));
    CHECK(!lc_parse_cgroup(TEXT("0::\n"), "", path, sizeof path));
    CHECK(!lc_parse_cgroup("0::/a\0b\n", 8, "", path, sizeof path));
    CHECK(!lc_parse_cgroup(TEXT("0::/cut"), "", path, sizeof path));
}

/* Under the address sanitizer: nothing beyond the text is touched, whatever it holds. */
static void parse_everything(const char *text, size_t length)
{
    lc_cpu_fields cpu;
    lc_throttle_fields throttle;
    uint64_t value;
    char path[16];
    (void)lc_parse_cpu_line(text, length, &cpu);
    (void)lc_parse_throttle(text, length, &throttle);
    (void)lc_parse_pressure(text, length, &value);
    (void)lc_parse_available(text, length, &value);
    (void)lc_parse_number(text, length, &value);
    (void)lc_parse_has_quota(text, length);
    if (lc_parse_cgroup(text, length, "cpu", path, sizeof path)) {
        CHECK(strlen(path) < sizeof path && path[0] == '/');
    }
}

TEST(texts_that_are_cut_or_changed_anywhere_are_survived)
{
    static const char *const texts[] = {
        "cpu  100 20 30 1000 50 6 7 8 90 10\n",
        "nr_throttled 12\nthrottled_usec 3456\n",
        "some avg10=0.12 avg60=3.00 avg300=0.00 total=45678\n",
        "MemAvailable:   2048 kB\n",
        hybrid,
    };
    static const char changes[] = {'\0', '\n', ':', ',', ' ', '9', '/', (char)0xff};
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        const size_t whole = strlen(texts[t]);
        for (size_t length = 0; length <= whole; length++) {
            char *copy = malloc(length ? length : 1u);
            memcpy(copy, texts[t], length);
            parse_everything(copy, length);
            for (size_t i = 0; i < length; i++) {
                const char before = copy[i];
                for (size_t c = 0; c < sizeof changes; c++) {
                    copy[i] = changes[c];
                    parse_everything(copy, length);
                }
                copy[i] = before;
            }
            free(copy);
        }
    }
}

int main(void) { return run_tests(); }
