#include "probes/qt/qt.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#define FLAGS_OF_PROCESS_EVENTS "E6QFlagsIN10QEventLoop17ProcessEventsFlagEE"

/* A virtual table begins with the offset to the object's top and the type; functions follow. */
#define WORDS_BEFORE_FUNCTIONS 2u

/* The place of `function` among the functions of the table; false unless it is there exactly once. */
static bool find_index(void *library, const char *table_symbol, const char *function_symbol, size_t *index)
{
    void *const *table = dlsym(library, table_symbol);
    void *function = dlsym(library, function_symbol);
    const ElfW(Sym) *symbol = NULL;
    Dl_info info;
    if (table == NULL || function == NULL || !dladdr1(table, &info, (void **)&symbol, RTLD_DL_SYMENT) ||
        symbol == NULL || info.dli_saddr != (const void *)table) {
        return false;
    }
    size_t found = 0;
    for (size_t i = WORDS_BEFORE_FUNCTIONS; i < symbol->st_size / sizeof *table; i++) {
        if (table[i] == function) {
            *index = i - WORDS_BEFORE_FUNCTIONS;
            found++;
        }
    }
    return found == 1;
}

/* Where a QEvent keeps its type: made with two types that occur nowhere else in it. 0: at neither of the
 * two known places. */
static size_t find_event_type(void *library)
{
    /* Qt 6, Qt 5: behind the table's address, and behind a private pointer */
    static const size_t places[] = {8, 16};
    static const uint16_t types[] = {0x7A5Cu, 0x6B3Du};
    void (*construct)(void *event, int type);
    void (*destroy)(void *event);
    *(void **)&construct = dlsym(library, "_ZN6QEventC1ENS_4TypeE");
    *(void **)&destroy = dlsym(library, "_ZN6QEventD1Ev");
    bool fits[] = {true, true};
    if (construct == NULL || destroy == NULL) {
        return 0;
    }
    for (size_t i = 0; i < 2; i++) {
        _Alignas(16) unsigned char event[256] = {0}; /* a QEvent has 16 or 24 bytes */
        construct(event, types[i]);
        for (size_t place = 0; place < 2; place++) {
            fits[place] = fits[place] && memcmp(event + places[place], &types[i], sizeof types[i]) == 0;
        }
        destroy(event);
    }
    return fits[0] == fits[1] ? 0 : places[fits[1]];
}

bool lc_qt_library_find(const char *path, lc_qt_library *out, const char **why_not)
{
    /* stays counted: what is found here is used for good */
    void *library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    if (library == NULL) {
        *why_not = "QtCore is not loaded from where its module says";
        return false;
    }
    *out = (lc_qt_library){0};
    if (!find_index(library, "_ZTV16QCoreApplication", "_ZN16QCoreApplication6notifyEP7QObjectP6QEvent",
                    &out->notify_index) ||
        !find_index(library, "_ZTV20QEventDispatcherUNIX",
                    "_ZN20QEventDispatcherUNIX13processEvents" FLAGS_OF_PROCESS_EVENTS,
                    &out->process_events_index)) {
        *why_not = "QtCore's virtual tables are not as they are known to be";
        dlclose(library);
        return false;
    }
    out->application = dlsym(library, "_ZN16QCoreApplication4selfE");
    *(void **)&out->application_dispatcher = dlsym(library, "_ZN16QCoreApplication15eventDispatcherEv");
    *(void **)&out->thread_dispatcher = dlsym(library, "_ZN24QAbstractEventDispatcher8instanceEP7QThread");
    *(void **)&out->add_pre_routine = dlsym(library, "_Z14qAddPreRoutinePFvvE");
    if (out->application == NULL || out->application_dispatcher == NULL || out->thread_dispatcher == NULL ||
        out->add_pre_routine == NULL) {
        *why_not = "QtCore lacks a function that every known version has";
        dlclose(library);
        return false;
    }
    out->event_type_offset = find_event_type(library);
    return true;
}
