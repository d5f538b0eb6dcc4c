#include "core/keeper/keeper_page.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/flight/flight_format.h"

static int write_at(const lc_keeper_page *page, size_t offset, const void *bytes, size_t count)
{
    ssize_t wrote;
    do {
        wrote = pwrite(page->fd, bytes, count, (off_t)(page->at + offset));
    } while (wrote < 0 && errno == EINTR);
    return wrote < 0 ? errno : (size_t)wrote == count ? 0 : ENOSPC;
}

static int read_at(const lc_keeper_page *page, uint64_t offset, void *bytes, size_t count)
{
    ssize_t got;
    do {
        got = pread(page->fd, bytes, count, (off_t)offset);
    } while (got < 0 && errno == EINTR);
    return got < 0 ? errno : (size_t)got == count ? 0 : ENODATA; /* it was cut short */
}

static void ring(const lc_keeper_page *page)
{
    char *const bell = (char *)page->bells + offsetof(lc_keeper, bell);
    const long none = 0; /* of a second word's sleepers */
    syscall(SYS_futex, bell, FUTEX_WAKE_OP, INT_MAX, none, bell,
            FUTEX_OP(FUTEX_OP_ADD, 1, FUTEX_OP_CMP_EQ, 0));
}

/* Numbers of the last text that was put, and of the last one that was written. */
static int read_texts(const lc_keeper_page *page, uint64_t *put, uint64_t *written)
{
    const int error = read_at(page, page->at + offsetof(lc_keeper, text_number), put, sizeof *put);
    return error ? error : read_at(page, offsetof(lc_header, text_written), written, sizeof *written);
}

static const char *what_is_wrong(const lc_header *header, const struct stat *facts)
{
    const lc_section *section = &header->sections[LC_SECTION_KEEPER];
    const uint64_t size = (uint64_t)facts->st_size, memory_page = (uint64_t)sysconf(_SC_PAGESIZE);
    if (memcmp(header->magic, LC_FLIGHT_MAGIC, sizeof header->magic) != 0 ||
        header->byte_order != LC_BYTE_ORDER_MARK) {
        return "it is not a flight file of this machine";
    }
    if (header->version != LC_FLIGHT_VERSION) {
        return "it is of another version";
    }
    if (section->stride != LC_KEEPER_BYTES || section->count != 1 || section->offset % memory_page != 0 ||
        section->offset < LC_HEADER_BYTES || section->offset > size ||
        size - section->offset < LC_KEEPER_BYTES) {
        return "it has no keeper's page, or is damaged";
    }
    return NULL;
}

static int check(lc_keeper_page *page, const char **why)
{
    lc_header header;
    struct stat facts;
    if (fstat(page->fd, &facts) != 0) {
        return errno;
    }
    *why = !S_ISREG(facts.st_mode)                         ? "it is not a regular file"
           : facts.st_uid != geteuid()                     ? "it belongs to another user"
           : read_at(page, 0, &header, sizeof header) != 0 ? "it is too short"
                                                           : what_is_wrong(&header, &facts);
    if (*why != NULL) {
        return EINVAL;
    }
    page->at = header.sections[LC_SECTION_KEEPER].offset;
    page->mapped = (size_t)sysconf(_SC_PAGESIZE);
    page->bells = mmap(NULL, page->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, page->fd, (off_t)page->at);
    return page->bells == MAP_FAILED ? errno : 0;
}

int lc_keeper_page_open(lc_keeper_page *page, const char *path, const char **why)
{
    uint64_t put, written;
    /* Not to be held up by a fifo or a device before it is known to be one. */
    *page = (lc_keeper_page){.fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)};
    *why = NULL;
    if (page->fd < 0) {
        return errno;
    }
    const int error = check(page, why);
    if (error != 0) {
        close(page->fd);
        page->fd = -1;
        return error;
    }
    if (read_texts(page, &put, &written) == 0 && put != written) {
        ring(page);
    }
    return 0;
}

void lc_keeper_page_close(lc_keeper_page *page)
{
    if (page->fd >= 0) {
        munmap(page->bells, page->mapped);
        close(page->fd);
        page->fd = -1;
    }
}

int lc_keeper_page_take(const lc_keeper_page *page, uint64_t slot, uint64_t serial)
{
    return write_at(page, offsetof(lc_keeper, taken) + slot * sizeof serial, &serial, sizeof serial);
}

int lc_keeper_page_tell(const lc_keeper_page *page, uint64_t slot, uint64_t serial)
{
    return write_at(page, offsetof(lc_keeper, told) + slot * sizeof serial, &serial, sizeof serial);
}

int lc_keeper_page_beat(const lc_keeper_page *page, uint64_t now_ns)
{
    const uint64_t words[] = {(uint64_t)getpid(), now_ns};
    return write_at(page, offsetof(lc_keeper, pid), words, sizeof words);
}

int lc_keeper_page_say(const lc_keeper_page *page, const char *text, size_t bytes)
{
    uint64_t put, written, length = bytes;
    int error = bytes > LC_KEEPER_TEXT_BYTES ? EMSGSIZE : read_texts(page, &put, &written);
    if (error == 0 && put != written) {
        return EAGAIN;
    }
    error = error ? error : write_at(page, offsetof(lc_keeper, text), text, bytes);
    error = error ? error : write_at(page, offsetof(lc_keeper, text_bytes), &length, sizeof length);
    if (error == 0) {
        put++;
        atomic_thread_fence(memory_order_seq_cst); /* the number comes after what it vouches for */
        error = write_at(page, offsetof(lc_keeper, text_number), &put, sizeof put);
    }
    if (error == 0) {
        ring(page);
    }
    return error;
}

int lc_keeper_page_set_closed(const lc_keeper_page *page)
{
    const uint64_t closed = 1;
    const int error = write_at(page, offsetof(lc_keeper, closed), &closed, sizeof closed);
    if (error == 0) {
        ring(page);
    }
    return error;
}

int lc_keeper_page_errand(const lc_keeper_page *page)
{
    uint32_t errands;
    const uint64_t at = offsetof(lc_keeper, errands);
    const int error = read_at(page, page->at + at, &errands, sizeof errands);
    errands++;
    return error ? error : write_at(page, at, &errands, sizeof errands);
}
