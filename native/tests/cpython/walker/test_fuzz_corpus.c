/* The fuzz targets on their corpus, and on many small changes of it: what can be had without clang. */
#define LC_FUZZ_REPLAY
#include "fuzz/fuzz_chain.c"
#include "fuzz/fuzz_linetable.c"
#include "fuzz/fuzz_strings.c"

#include <dirent.h>

#include "tests/check.h"

#define INPUT_MAX 8192u
#define CHANGED_INPUTS 300u

typedef int (*target)(const uint8_t *data, size_t size);

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void replay(target run, const char *path)
{
    static uint8_t input[INPUT_MAX];
    static uint8_t changed[INPUT_MAX];
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL);
    const size_t size = fread(input, 1, sizeof input, file);
    fclose(file);
    CHECK(run(input, size) == 0);
    uint64_t random = 88172645463325252u + size;
    for (unsigned i = 0; i < CHANGED_INPUTS && size > 0; i++) {
        memcpy(changed, input, size);
        for (unsigned k = 0; k <= i % 4; k++) {
            changed[next_random(&random) % size] = (uint8_t)next_random(&random);
        }
        CHECK(run(changed, i % 3 == 0 ? next_random(&random) % (size + 1) : size) == 0);
    }
}

static unsigned replay_all(target run, const char *name)
{
    char folder[1024];
    char path[2048];
    snprintf(folder, sizeof folder, "%s", __FILE__);
    char *slash = strrchr(folder, '/');
    CHECK(slash != NULL);
    snprintf(slash, sizeof folder - (size_t)(slash - folder), "/../../../fuzz/corpus/%s", name);
    DIR *directory = opendir(folder);
    CHECK(directory != NULL);
    unsigned count = 0;
    const struct dirent *entry;
    while ((entry = readdir(directory)) != NULL) {
        if (entry->d_name[0] != '.') {
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
            replay(run, path);
            count++;
        }
    }
    closedir(directory);
    return count;
}

int main(void)
{
    CHECK(replay_all(lc_fuzz_linetable, "linetable") > 0);
    CHECK(replay_all(lc_fuzz_strings, "strings") > 0);
    CHECK(replay_all(lc_fuzz_chain, "chain") > 0);
    return 0;
}
