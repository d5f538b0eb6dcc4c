#include "core/start/start.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/clock/clock.h"
#include "core/flight/set_aside.h"
#include "core/host/process_facts.h"

#define TRIFLE_NS UINT64_C(20000) /* importlib.import_module of what is there already */

bool lc_start_awaited;

static lc_start_header *header;    /* NULL: nothing is noted */
static uint32_t open_imports[256]; /* numbers; those further in belong to the innermost of them */
static uint32_t depth;
static uint64_t faults_before[256];
static uint64_t slow_from_ns;
static uint64_t room; /* for so many imports */
static void (*when_slow)(void);

static lc_start_import *first_import(void)
{
    return (lc_start_import *)((char *)header + LC_START_HEADER_BYTES);
}

static uint64_t bytes_for(uint64_t imports)
{
    return LC_START_HEADER_BYTES + imports * sizeof(lc_start_import);
}

static uint64_t major_faults(int whose)
{
    struct rusage usage;
    return getrusage(whose, &usage) == 0 ? (uint64_t)usage.ru_majflt : 0;
}

static void fill_header(uint64_t hook_ns, uint64_t run_ns, uint64_t bytes, bool unfrozen)
{
    const uint64_t boot_ns = lc_clock_read_ns(CLOCK_BOOTTIME), now_ns = lc_now_ns();
    const long per_second = sysconf(_SC_CLK_TCK);
    header->version = LC_START_VERSION;
    header->byte_order = LC_START_BYTE_ORDER;
    header->file_bytes = bytes;
    header->tid = (uint64_t)syscall(SYS_gettid);
    header->boot_offset_ns = boot_ns > now_ns ? boot_ns - now_ns : 0;
    header->process_start = lc_process_start(0);
    header->tick_ns = per_second > 0 ? 1000000000u / (uint64_t)per_second : 0;
    header->run_ns = run_ns;
    header->unfrozen = unfrozen;
    atomic_store(&header->marks[LC_START_HOOK], hook_ns);
    atomic_store(&header->marks[LC_START_WATCHED], now_ns);
    /* The magic comes last: a file without it is still being made. */
    atomic_thread_fence(memory_order_release);
    memcpy(header->magic, LC_START_MAGIC, sizeof header->magic);
}

int lc_start_create(const char *path, uint64_t hook_ns, uint64_t run_ns, uint64_t slow_ns, void (*slow)(void),
                    bool imports, bool unfrozen)
{
    if (header != NULL) {
        return EALREADY;
    }
    const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return errno;
    }
    const uint64_t wanted = imports ? LC_START_IMPORTS_MAX : 0;
    const uint64_t bytes = bytes_for(wanted);
    int error = lc_set_aside(fd, 0, bytes);
    void *base = error == 0 ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    error = error == 0 && base == MAP_FAILED ? errno : error;
    close(fd);
    if (error != 0) {
        unlink(path);
        return error;
    }
    header = base;
    depth = 0;
    room = wanted;
    fill_header(hook_ns, run_ns, bytes, unfrozen);
    const uint64_t began_ns = header->process_start * header->tick_ns - header->boot_offset_ns;
    slow_from_ns = slow_ns != 0 ? (run_ns != 0 ? run_ns : began_ns) + slow_ns : UINT64_MAX;
    when_slow = slow;
    lc_start_awaited = true;
    return 0;
}

void lc_start_note(lc_start_mark mark, bool again)
{
    lc_start_header *noted = header; /* its memory stays */
    if (noted == NULL) {
        return;
    }
    uint64_t none = 0;
    const uint64_t now_ns = lc_now_ns();
    if (again) {
        atomic_store(&noted->marks[mark], now_ns);
    } else if (!atomic_compare_exchange_strong(&noted->marks[mark], &none, now_ns)) {
        return;
    }
    atomic_store(&noted->major_faults, major_faults(RUSAGE_SELF));
    if (mark == LC_START_LISTENING || mark == LC_START_IDLE || mark == LC_START_FRAME ||
        mark == LC_START_OVER) {
        const bool is_first = lc_start_awaited;
        lc_start_awaited = false;
        if (is_first && now_ns > slow_from_ns) {
            when_slow();
        }
    }
}

void lc_start_collected(uint64_t took_ns)
{
    if (lc_start_awaited && header != NULL) {
        atomic_fetch_add(&header->collections, 1u);
        atomic_fetch_add(&header->gc_ns, took_ns);
    }
}

void lc_start_idle(void)
{
    if (lc_start_is_here()) {
        lc_start_note(LC_START_IDLE, false);
    }
}

bool lc_start_is_here(void) { return header != NULL && header->tid == (uint64_t)syscall(SYS_gettid); }

void lc_start_leave(void)
{
    lc_start_awaited = false;
    if (header != NULL) {
        lc_let_go_of_pages(header, bytes_for(room));
        header = NULL;
    }
}

enum { DEPTH_MAX = sizeof open_imports / sizeof *open_imports };

static lc_start_import *noted_import(uint64_t number)
{
    return header != NULL && number < room ? &first_import()[number] : NULL;
}

uint64_t lc_start_import_begin(const char *name, size_t length)
{
    const uint64_t number = atomic_load_explicit(&header->imports, memory_order_relaxed);
    lc_start_import *import = noted_import(number);
    if (import != NULL) {
        memset(import, 0, sizeof *import);
        memcpy(import->name, name, length < LC_START_NAME_BYTES ? length : LC_START_NAME_BYTES);
        import->depth = depth;
        import->begin_ns = lc_now_ns();
    }
    if (depth < DEPTH_MAX) {
        open_imports[depth] = (uint32_t)number;
        faults_before[depth] = major_faults(RUSAGE_THREAD);
    }
    depth++;
    atomic_store_explicit(&header->imports, number + 1u, memory_order_release);
    return number;
}

void lc_start_import_end(uint64_t number, bool failed)
{
    lc_start_import *import = noted_import(number);
    if (header == NULL || depth == 0) {
        return;
    }
    depth--;
    if (import == NULL) {
        return;
    }
    const uint64_t now_ns = lc_now_ns();
    if (atomic_load_explicit(&header->imports, memory_order_relaxed) == number + 1u &&
        import->how == LC_IMPORT_NO_CODE && now_ns - import->begin_ns < TRIFLE_NS) {
        atomic_store_explicit(&header->imports, number, memory_order_release);
        return;
    }
    import->failed = failed;
    import->major_faults = depth < DEPTH_MAX ? major_faults(RUSAGE_THREAD) - faults_before[depth] : 0;
    atomic_store_explicit(&import->end_ns, now_ns, memory_order_release);
}

void lc_start_import_read(const char *path, size_t length, uint64_t bytes)
{
    if (header == NULL || depth == 0 || depth > DEPTH_MAX) {
        return;
    }
    lc_start_import *import = noted_import(open_imports[depth - 1u]);
    if (import == NULL) {
        return;
    }
    import->bytes += bytes;
    if (length > 4 && memcmp(path + length - 4, ".pyc", 4) == 0) {
        import->how = LC_IMPORT_CACHED;
    } else if (length > 3 && memcmp(path + length - 3, ".py", 3) == 0) {
        import->how = LC_IMPORT_COMPILED;
    }
}

uint32_t lc_start_import_depth(void) { return depth; }
