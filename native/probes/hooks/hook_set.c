#include "probes/hooks/hook_set.h"

#include "module/bindings.h"

/* lc_got_choose: the hook that leads to `original`. Where all ways are taken by others the entry stays as
 * it is. */
static void *hook_for(void *function, void *original)
{
    lc_hooked_function *f = function;
    for (uint32_t way = 0; way < LC_HOOK_WAYS; way++) {
        if (original == f->hooks[way]) {
            return original; /* hooked already */
        }
    }
    for (uint32_t way = 0; way < LC_HOOK_WAYS; way++) {
        if (f->next[way] == NULL) {
            __atomic_store_n(&f->next[way], original, __ATOMIC_RELEASE);
        }
        if (f->next[way] == original) {
            return f->hooks[way];
        }
    }
    return NULL;
}

static void forget_what_is_gone(lc_hooked_object *object)
{
    size_t kept = 0;
    for (size_t i = 0; i < object->count; i++) {
        if (lc_got_is_in_place(&object->patches[i])) {
            object->patches[kept] = object->patches[i];
            object->functions[kept++] = object->functions[i];
        } else {
            (void)lc_got_restore(&object->patches[i]); /* notes what has become of it */
        }
    }
    object->count = kept;
}

static void hook_function(lc_hook_set *set, lc_hooked_object *object, lc_got_object where, uint8_t function)
{
    lc_hooked_function *hooked = &set->functions[function];
    const lc_got_call call = {.symbol = hooked->name, .fallback = hooked->fallback};
    const size_t added = lc_got_replace(where, call, hook_for, hooked, &object->patches[object->count],
                                        LC_HOOK_PATCHES - object->count);
    memset(&object->functions[object->count], function, added);
    object->count += added;
}

/* Rows of objects that have been unloaded are free again. */
static bool is_free(lc_hooked_object *object)
{
    if (object->uses != 0) {
        forget_what_is_gone(object);
        object->uses = object->count == 0 ? 0 : object->uses;
    }
    return object->uses == 0;
}

static lc_hooked_object *row_of(lc_hook_set *set, const void *base)
{
    lc_hooked_object *fresh = NULL;
    for (size_t i = 0; i < LC_HOOK_OBJECTS; i++) {
        lc_hooked_object *row = &set->objects[i];
        if (row->uses != 0 && row->base == base) {
            return row;
        }
        if (fresh == NULL && is_free(row)) {
            fresh = row;
        }
    }
    if (fresh != NULL) {
        *fresh = (lc_hooked_object){.base = base};
    }
    return fresh;
}

const lc_hooked_object *lc_hook_set_add(lc_hook_set *set, lc_got_object where, uint8_t functions)
{
    const void *base = NULL;
    lc_hooked_object *object = lc_got_find(where, &base) ? row_of(set, base) : NULL;
    if (object == NULL) {
        return NULL;
    }
    /* An object that has been unloaded and loaded again has its entries back, or other code has put them
     * back. */
    forget_what_is_gone(object);
    for (uint8_t function = 0; function < functions; function++) {
        hook_function(set, object, where, function);
    }
    object->uses += object->count != 0;
    return object->count != 0 ? object : NULL;
}

static void unhook_object(lc_hooked_object *object)
{
    if (object->uses > 0 && --object->uses == 0) {
        for (size_t i = 0; i < object->count; i++) {
            (void)lc_got_restore(&object->patches[i]);
        }
    }
}

void lc_hook_set_remove(lc_hook_set *set, lc_got_object where)
{
    const void *base = NULL;
    if (!lc_got_find(where, &base)) {
        return;
    }
    for (size_t i = 0; i < LC_HOOK_OBJECTS; i++) {
        if (set->objects[i].base == base) {
            unhook_object(&set->objects[i]);
        }
    }
}

bool lc_hook_where(PyObject *where, lc_got_object *out)
{
    *out = (lc_got_object){0};
    if (PyUnicode_Check(where)) {
        out->path = PyUnicode_AsUTF8(where);
        return out->path != NULL;
    }
    out->address = PyLong_AsVoidPtr(where);
    return !PyErr_Occurred();
}

PyObject *lc_hook_set_hook(lc_hook_set *set, PyObject *where, uint8_t functions)
{
    lc_got_object asked;
    if (!lc_hook_where(where, &asked)) {
        return NULL;
    }
    const lc_hooked_object *object = lc_hook_set_add(set, asked, functions);
    PyObject *list = PyList_New(0);
    for (uint8_t i = 0; object != NULL && list != NULL && i < functions; i++) {
        if (memchr(object->functions, i, object->count) != NULL) {
            lc_append(&list, PyUnicode_FromString(set->functions[i].name));
        }
    }
    return lc_tuple_of(list);
}

PyObject *lc_hook_set_unhook(lc_hook_set *set, PyObject *where)
{
    lc_got_object asked;
    if (!lc_hook_where(where, &asked)) {
        return NULL;
    }
    lc_hook_set_remove(set, asked);
    Py_RETURN_NONE;
}
