#include "shim/python.h"

#include "shim/driver.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>

#include "shim/inside.h"

#define RANGES_MAX     16u
#define LOOK_EVERY     256u /* captures, while there is no interpreter: it may be loaded yet */
#define FRAMES_SKIPPED 4u   /* of the CUDA runtime, between us and the caller */

typedef struct object object; /* PyObject */

/* Rows: result, name, parameters. The last ones may be missing. */
#define FUNCTIONS(FN)                                                                                                  \
    FN(int, Py_IsInitialized, (void))                                                                                  \
    FN(int, PyGILState_Check, (void))                                                                                  \
    FN(int, PyGILState_Ensure, (void))                                                                                 \
    FN(void, PyGILState_Release, (int))                                                                                \
    FN(void *, PyGILState_GetThisThreadState, (void))                                                                  \
    FN(object *, PyEval_GetFrame, (void))                                                                              \
    FN(object *, PyFrame_GetCode, (object *))                                                                          \
    FN(object *, PyFrame_GetBack, (object *))                                                                          \
    FN(int, PyFrame_GetLineNumber, (object *))                                                                         \
    FN(object *, PyObject_GetAttrString, (object *, const char *))                                                     \
    FN(const char *, PyUnicode_AsUTF8AndSize, (object *, long *))                                                      \
    FN(object *, PyErr_Occurred, (void))                                                                               \
    FN(void, PyErr_Clear, (void))                                                                                      \
    FN(void, PyErr_Fetch, (object **, object **, object **))                                                           \
    FN(void, PyErr_Restore, (object *, object *, object *))                                                            \
    FN(void, Py_IncRef, (object *))                                                                                    \
    FN(void, Py_DecRef, (object *))
#define OPTIONAL_FUNCTIONS(FN)                                                                                         \
    FN(int, PyGC_Disable, (void)) /* 3.10 */                                                                           \
    FN(int, PyGC_Enable, (void))                                                                                       \
    FN(int, Py_IsFinalizing, (void)) /* 3.13; the other one before that */                                             \
    FN(int, _Py_IsFinalizing, (void))

static struct {
#define FN(result, name, parameters) result(*name) parameters;
    FUNCTIONS(FN)
    OPTIONAL_FUNCTIONS(FN)
#undef FN
} python;

struct range {
    uintptr_t begin, end;
};

static struct {
    _Atomic bool is_there, is_looking;
    _Atomic uint32_t until_look;                               /* captures */
    struct range interpreter[RANGES_MAX], foreign[RANGES_MAX]; /* foreign: ctypes, cffi */
    _Atomic uint32_t interpreter_count, foreign_count;
} state;

static bool find(const char *name, void *slot)
{
    void *function = driver_dlsym(RTLD_DEFAULT, name);
    memcpy(slot, &function, sizeof function);
    return function != NULL;
}

static bool find_functions(void)
{
    bool is_there = true;
#define FN(result, name, parameters) is_there = is_there && find(#name, &python.name);
    FUNCTIONS(FN)
#undef FN
#define FN(result, name, parameters) find(#name, &python.name);
    if (is_there) {
        OPTIONAL_FUNCTIONS(FN)
    }
#undef FN
    return is_there;
}

static void add_range(struct range *ranges, _Atomic uint32_t *count, const struct dl_phdr_info *info)
{
    uint32_t used = atomic_load_explicit(count, memory_order_relaxed);
    struct range range = {UINTPTR_MAX, 0};
    for (uint32_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t begin = info->dlpi_addr + segment->p_vaddr, end = begin + segment->p_memsz;
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X)) {
            range.begin = begin < range.begin ? begin : range.begin;
            range.end = end > range.end ? end : range.end;
        }
    }
    for (uint32_t i = 0; i < used; i++) {
        if (ranges[i].begin == range.begin) {
            return;
        }
    }
    if (used < RANGES_MAX && range.begin < range.end) {
        ranges[used] = range;
        atomic_store_explicit(count, used + 1, memory_order_release);
    }
}

static bool holds(const struct dl_phdr_info *info, const void *address)
{
    for (uint32_t i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        if (info->dlpi_phdr[i].p_type == PT_LOAD && (uintptr_t)address - begin < info->dlpi_phdr[i].p_memsz) {
            return true;
        }
    }
    return false;
}

static int note_range(struct dl_phdr_info *info, size_t size, void *unused)
{
    const char *name = info->dlpi_name != NULL ? info->dlpi_name : "";
    const char *slash = strrchr(name, '/');
    const void *function;
    (void)size, (void)unused;
    name = slash != NULL ? slash + 1 : name;
    memcpy(&function, &python.PyEval_GetFrame, sizeof function);
    if (holds(info, function)) {
        add_range(state.interpreter, &state.interpreter_count, info);
    } else if (strncmp(name, "_ctypes", 7) == 0 || strncmp(name, "libffi", 6) == 0 ||
               strncmp(name, "_cffi_backend", 13) == 0) {
        add_range(state.foreign, &state.foreign_count, info);
    }
    return 0;
}

/* True if the functions are there. One thread looks now and then; who comes meanwhile goes without. */
static bool is_there(void)
{
    bool was_there = atomic_load_explicit(&state.is_there, memory_order_acquire);
    if ((was_there && atomic_load_explicit(&state.foreign_count, memory_order_relaxed) > 0) ||
        atomic_fetch_sub_explicit(&state.until_look, 1, memory_order_relaxed) != 0 ||
        atomic_exchange(&state.is_looking, true)) {
        return was_there;
    }
    atomic_store_explicit(&state.until_look, LOOK_EVERY, memory_order_relaxed);
    bool has_functions = was_there || find_functions();
    if (has_functions) {
        dl_iterate_phdr(note_range, NULL);
    }
    atomic_store_explicit(&state.is_there, has_functions, memory_order_release);
    atomic_store(&state.is_looking, false);
    return has_functions;
}

static bool is_within(const struct range *ranges, uint32_t count, const void *address)
{
    for (uint32_t i = 0; i < count; i++) {
        if ((uintptr_t)address >= ranges[i].begin && (uintptr_t)address < ranges[i].end) {
            return true;
        }
    }
    return false;
}

bool python_owns(const void *address)
{
    return is_within(state.interpreter, atomic_load_explicit(&state.interpreter_count, memory_order_acquire), address);
}

static bool comes_from_foreign_call(void *const *addresses, uint32_t count)
{
    uint32_t ranges = atomic_load_explicit(&state.foreign_count, memory_order_acquire);
    for (uint32_t i = 0; i < count && i < FRAMES_SKIPPED; i++) {
        if (is_within(state.foreign, ranges, addresses[i])) {
            return true;
        }
    }
    return false;
}

static bool is_ending(void)
{
    return (python.Py_IsFinalizing != NULL && python.Py_IsFinalizing()) ||
           (python._Py_IsFinalizing != NULL && python._Py_IsFinalizing());
}

/* With the interpreter's lock afterwards; false: this thread is not in Python, or it would have to wait. */
static bool enter(struct python_frames *out, void *const *addresses, uint32_t count)
{
    if (!python.Py_IsInitialized() || is_ending() || python.PyGILState_GetThisThreadState() == NULL) {
        return false;
    }
    if (python.PyGILState_Check()) {
        return true;
    }
    if (!comes_from_foreign_call(addresses, count)) {
        return false;
    }
    out->taken = python.PyGILState_Ensure();
    out->was_taken = true;
    return true;
}

static void collector_off(struct python_frames *out)
{
    out->had_collector = python.PyGC_Disable != NULL && python.PyGC_Enable != NULL && python.PyGC_Disable();
}

void python_capture(struct python_frames *out, void *const *addresses, uint32_t count)
{
    out->count = 0;
    out->had_collector = 0;
    out->is_cut = out->was_taken = false;
    if (!is_there() || !enter(out, addresses, count)) {
        return;
    }
    collector_off(out);
    object *frame = python.PyEval_GetFrame(); /* borrowed */
    if (frame != NULL) {
        python.Py_IncRef(frame);
    }
    while (frame != NULL && out->count < TRACE_STACK_MOST) {
        out->frames[out->count++] =
            (struct python_place){python.PyFrame_GetCode(frame), python.PyFrame_GetLineNumber(frame)};
        object *back = python.PyFrame_GetBack(frame);
        python.Py_DecRef(frame);
        frame = back;
    }
    if (frame != NULL) {
        python.Py_DecRef(frame);
        out->is_cut = true;
    }
    if (out->count == 0) {
        python_release(out);
    }
}

uint64_t python_hash(uint64_t before, const struct python_frames *frames)
{
    uint64_t hash = before;
    for (uint32_t i = 0; i < frames->count; i++) {
        hash = (hash ^ (uintptr_t)frames->frames[i].code) * 0x9e3779b97f4a7c15u;
        hash = ((hash ^ hash >> 29) ^ (uint64_t)frames->frames[i].line) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 32;
    }
    return hash | 1;
}

/* 0: it has no such attribute. */
static uint32_t name_of(struct definitions *into, object *code, const char *attribute)
{
    object *value = python.PyObject_GetAttrString(code, attribute);
    const char *text = value != NULL ? python.PyUnicode_AsUTF8AndSize(value, NULL) : NULL;
    uint32_t number = text != NULL ? definitions_name(into, text) : 0;
    if (value != NULL) {
        python.Py_DecRef(value);
    }
    python.PyErr_Clear();
    return number;
}

struct trace_frame python_frame(struct definitions *into, struct python_place *place)
{
    struct trace_frame frame = {.kind = TRACE_PYTHON, .line = place->line > 0 ? (uint32_t)place->line : 0};
    object *code = place->code, *type = NULL, *value = NULL, *trace = NULL;
    bool has_error = python.PyErr_Occurred() != NULL;
    if (has_error) {
        python.PyErr_Fetch(&type, &value, &trace);
    }
    frame.file = name_of(into, code, "co_filename");
    frame.function = name_of(into, code, "co_qualname"); /* 3.11 */
    frame.function = frame.function != 0 ? frame.function : name_of(into, code, "co_name");
    if (has_error) {
        python.PyErr_Restore(type, value, trace);
    }
    python.Py_IncRef(code); /* for ever: its address is part of a hash */
    return frame;
}

void python_release(struct python_frames *frames)
{
    if (frames->count == 0 && !frames->was_taken && !frames->had_collector) {
        return;
    }
    for (uint32_t i = 0; i < frames->count; i++) {
        python.Py_DecRef(frames->frames[i].code);
    }
    if (frames->had_collector) {
        python.PyGC_Enable();
    }
    if (frames->was_taken) {
        python.PyGILState_Release(frames->taken);
    }
    frames->count = 0;
    frames->was_taken = false;
    frames->had_collector = 0;
}
