#include "trace/symbols.h"
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *__cxa_demangle(const char *mangled, char *buffer, size_t *length, int *status);

#define TEXT_MOST    1024
#define TEXT_SLOTS   1024
#define INLINED_MOST 32u /* places of one frame */

/* What was looked up: an open-addressed table that grows when it is half full. */
struct found {
    uint64_t offset;
    uint32_t module;
    uint32_t count;
    struct symbols_place *places; /* NULL: the slot is free */
};

struct text {
    struct text *next;
    char characters[];
};

/* A module's file, with its addresses as they are in the file. */
struct file {
    bool is_tried;
    Dwfl *reader;
    Dwfl_Module *module; /* NULL: not there, or not the one that was loaded */
};

struct asked {
    bool is_known;
    struct symbols_stack stack;
    const char *description; /* NULL: not asked for yet */
};

struct symbols {
    const struct trace *trace;
    struct file *files;  /* per module */
    struct asked *asked; /* per stack */
    struct found *found;
    size_t found_count, found_capacity;
    struct text *texts[TEXT_SLOTS]; /* by hash: each text once */
};

static uint64_t hash_text(const char *text)
{
    uint64_t hash = 14695981039346656037u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 1099511628211u;
    return hash ^ hash >> 32;
}

/* The same pointer for the same text; "?" if there is no memory. */
static const char *keep(struct symbols *symbols, const char *text)
{
    struct text **slot = &symbols->texts[hash_text(text) % TEXT_SLOTS];
    for (struct text *at = *slot; at; at = at->next)
        if (strcmp(at->characters, text) == 0)
            return at->characters;
    size_t bytes = strlen(text) + 1;
    struct text *kept = malloc(sizeof *kept + bytes);
    if (!kept)
        return "?";
    memcpy(kept->characters, text, bytes);
    kept->next = *slot;
    *slot = kept;
    return kept->characters;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* ---- files ---- */

static int find_no_elf(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, char **path, Elf **elf)
{
    (void)module, (void)data, (void)name, (void)base, (void)path, (void)elf;
    return -1;
}

static bool has_build_id(Dwfl_Module *module, const struct trace_module *recorded)
{
    const unsigned char *id;
    GElf_Addr address;
    int bytes = dwfl_module_build_id(module, &id, &address);
    return recorded->build_id_bytes == 0 ? bytes <= 0
                                         : bytes == (int)recorded->build_id_bytes &&
                                               memcmp(id, recorded->build_id, recorded->build_id_bytes) == 0;
}

static void open_file(const struct trace *trace, const struct trace_module *recorded, struct file *file)
{
    static char *no_path;
    static const Dwfl_Callbacks callbacks = {
        .find_elf = find_no_elf, .find_debuginfo = dwfl_standard_find_debuginfo, .debuginfo_path = &no_path};
    const char *path = trace->names[recorded->path];
    file->is_tried = true;
    if (path[0] != '/' || !(file->reader = dwfl_begin(&callbacks)))
        return;
    file->module = dwfl_report_elf(file->reader, "module", path, -1, 0, true);
    dwfl_report_end(file->reader, NULL, NULL);
    if (file->module && !has_build_id(file->module, recorded))
        file->module = NULL;
}

static Dwfl_Module *file_of(struct symbols *symbols, uint32_t module)
{
    struct file *file = &symbols->files[module];
    if (!file->is_tried)
        open_file(symbols->trace, &symbols->trace->modules[module], file);
    return file->module;
}

/* ---- names ---- */

/* "void ns::f<int>(float*) const" -> "ns::f<int>". Leaves what it does not understand. */
static void strip_signature(char *name)
{
    char *end = strrchr(name, ')'), *begin = name;
    int depth = 0;
    if (strstr(name, "operator") || !end)
        return;
    for (char *at = end; at >= name; at--) {
        depth += *at == ')' ? 1 : *at == '(' ? -1 : 0;
        if (depth == 0) {
            if (at > name)
                *at = '\0';
            break;
        }
    }
    depth = 0;
    for (char *at = name; *at; at++) {
        depth += *at == '(' || *at == '<' ? 1 : *at == ')' || *at == '>' ? -1 : 0;
        if (*at == ' ' && depth == 0 && at[1])
            begin = at + 1;
    }
    memmove(name, begin, strlen(begin) + 1);
}

static const char *readable(struct symbols *symbols, const char *name)
{
    int status = 0;
    char *plain = strncmp(name, "_Z", 2) == 0 ? __cxa_demangle(name, NULL, NULL, &status) : NULL;
    if (!plain)
        return keep(symbols, name);
    strip_signature(plain);
    const char *kept = keep(symbols, plain);
    free(plain);
    return kept;
}

static const char *name_of_function(struct symbols *symbols, Dwarf_Die *function)
{
    Dwarf_Attribute attribute;
    const char *name = dwarf_attr_integrate(function, DW_AT_linkage_name, &attribute) ? dwarf_formstring(&attribute)
                                                                                      : dwarf_diename(function);
    return name && *name ? readable(symbols, name) : NULL;
}

static bool is_function(Dwarf_Die *scope)
{
    return dwarf_tag(scope) == DW_TAG_subprogram || dwarf_tag(scope) == DW_TAG_inlined_subroutine;
}

/* Where the inlined function was called. */
static void take_call(struct symbols *symbols, Dwarf_Die *unit, Dwarf_Die *inlined, struct symbols_place *place)
{
    Dwarf_Attribute attribute;
    Dwarf_Word number, line;
    Dwarf_Files *files;
    size_t count;
    place->file = NULL;
    place->line = 0;
    if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &number) != 0 ||
        dwarf_getsrcfiles(unit, &files, &count) != 0 || number >= count)
        return;
    const char *file = dwarf_filesrc(files, number, NULL, NULL);
    place->file = file ? keep(symbols, file) : NULL;
    if (file && dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &line) == 0)
        place->line = (uint32_t)line;
}

/* The scopes that the address physically lies in, innermost first: what is inlined and into what. */
static int physical_scopes(Dwarf_Die *unit, Dwarf_Addr address, Dwarf_Die **scopes)
{
    Dwarf_Die *lexical = NULL, innermost;
    int count = dwarf_getscopes(unit, address, &lexical);
    if (count <= 0)
        return 0;
    innermost = lexical[0];
    free(lexical);
    count = dwarf_getscopes_die(&innermost, scopes);
    return count > 0 ? count : 0;
}

/* From `*place`, which knows file and line: the functions around them. Returns how many; 0: no debugging information.
 */
static uint32_t expand(struct symbols *symbols, Dwfl_Module *module, Dwarf_Addr address, struct symbols_place *place,
                       uint32_t most)
{
    Dwarf_Addr bias;
    Dwarf_Die *unit = dwfl_module_addrdie(module, address, &bias), *scopes = NULL;
    int count = unit ? physical_scopes(unit, address - bias, &scopes) : 0;
    uint32_t used = 0;
    for (int i = 0; i < count && used < most; i++) {
        if (!is_function(&scopes[i]))
            continue;
        const char *name = name_of_function(symbols, &scopes[i]);
        place[used].function = name ? name : "?";
        if (++used == most || dwarf_tag(&scopes[i]) == DW_TAG_subprogram)
            break;
        place[used] = place[used - 1];
        take_call(symbols, unit, &scopes[i], &place[used]);
    }
    free(scopes);
    return used;
}

static uint32_t look_up(struct symbols *symbols, const struct trace_frame *frame, struct symbols_place *place,
                        uint32_t most)
{
    const struct trace *trace = symbols->trace;
    const char *path = trace->names[trace->modules[frame->module].path];
    Dwfl_Module *module = frame->module ? file_of(symbols, frame->module) : NULL;
    uint32_t count = 0;
    place->module = keep(symbols, frame->module && *path ? last_part(path) : "?");
    if (module && frame->offset > 0) {
        Dwarf_Addr address = frame->offset - 1; /* in the call, not behind it */
        Dwfl_Line *line = dwfl_module_getsrc(module, address);
        int number = 0;
        const char *file = line ? dwfl_lineinfo(line, NULL, &number, NULL, NULL, NULL) : NULL;
        place->file = file ? keep(symbols, file) : NULL;
        place->line = file && number > 0 ? (uint32_t)number : 0;
        count = expand(symbols, module, address, place, most);
        GElf_Sym symbol;
        GElf_Off into;
        const char *name = count ? NULL : dwfl_module_addrinfo(module, address, &into, &symbol, NULL, NULL, NULL);
        place->function = name && *name ? readable(symbols, name) : place->function;
    }
    if (!place->function) {
        char text[TEXT_MOST];
        snprintf(text, sizeof text, "%s+0x%llx", place->module, (unsigned long long)frame->offset);
        place->function = keep(symbols, text);
    }
    return count ? count : 1;
}

static uint32_t take_python(struct symbols *symbols, const struct trace_frame *frame, struct symbols_place *place)
{
    const struct trace *trace = symbols->trace;
    const char *function = trace->names[frame->function], *file = trace->names[frame->file];
    *place = (struct symbols_place){.function = keep(symbols, *function ? function : "?"),
                                    .file = *file ? keep(symbols, file) : NULL,
                                    .module = "python",
                                    .line = frame->line,
                                    .is_python = true};
    return 1;
}

/* ---- the table ---- */

static struct found *slot_of(struct found *table, size_t capacity, uint64_t offset, uint32_t module)
{
    uint64_t hash = (offset ^ (uint64_t)module << 48) * 0x9e3779b97f4a7c15u;
    size_t at = (size_t)(hash >> 20) % capacity;
    while (table[at].places && (table[at].offset != offset || table[at].module != module))
        at = (at + 1) % capacity;
    return &table[at];
}

static bool make_room(struct symbols *symbols)
{
    if (symbols->found_count * 2 < symbols->found_capacity)
        return true;
    size_t capacity = symbols->found_capacity ? symbols->found_capacity * 2 : 1024;
    struct found *bigger = calloc(capacity, sizeof *bigger);
    if (!bigger)
        return false;
    for (size_t i = 0; i < symbols->found_capacity; i++)
        if (symbols->found[i].places)
            *slot_of(bigger, capacity, symbols->found[i].offset, symbols->found[i].module) = symbols->found[i];
    free(symbols->found);
    symbols->found = bigger;
    symbols->found_capacity = capacity;
    return true;
}

/* Python frames have keys of their own: module numbers that no module has. */
static void key_of(const struct symbols *symbols, const struct trace_frame *frame, uint64_t *offset, uint32_t *module)
{
    bool is_python = frame->kind == TRACE_PYTHON;
    *module = is_python ? symbols->trace->module_count + frame->file : frame->module;
    *offset = is_python ? (uint64_t)frame->function << 32 | frame->line : frame->offset;
}

/* The places of one frame, found once. Count 0: no memory. */
static const struct found *find_places(struct symbols *symbols, const struct trace_frame *frame)
{
    static const struct found nothing;
    struct symbols_place places[INLINED_MOST] = {0};
    uint64_t offset;
    uint32_t module;
    key_of(symbols, frame, &offset, &module);
    if (!make_room(symbols))
        return &nothing;
    struct found *slot = slot_of(symbols->found, symbols->found_capacity, offset, module);
    if (slot->places)
        return slot;
    uint32_t count = frame->kind == TRACE_PYTHON ? take_python(symbols, frame, places)
                                                 : look_up(symbols, frame, places, INLINED_MOST);
    struct symbols_place *kept = calloc(count, sizeof *kept);
    if (!kept)
        return &nothing;
    memcpy(kept, places, count * sizeof *kept);
    *slot = (struct found){offset, module, count, kept};
    symbols->found_count++;
    return slot;
}

/* ---- what is asked ---- */

struct symbols *symbols_open(const struct trace *trace)
{
    struct symbols *symbols = calloc(1, sizeof *symbols);
    if (!symbols)
        return NULL;
    unsetenv("DEBUGINFOD_URLS"); /* nothing is fetched */
    *symbols = (struct symbols){.trace = trace,
                                .files = calloc(trace->module_count, sizeof *symbols->files),
                                .asked = calloc(trace->stack_count, sizeof *symbols->asked)};
    if (symbols->files && symbols->asked)
        return symbols;
    symbols_close(symbols);
    return NULL;
}

void symbols_close(struct symbols *symbols)
{
    if (!symbols)
        return;
    for (uint32_t i = 0; symbols->files && i < symbols->trace->module_count; i++)
        if (symbols->files[i].reader)
            dwfl_end(symbols->files[i].reader);
    for (size_t i = 0; i < symbols->found_capacity; i++)
        free(symbols->found[i].places);
    for (size_t i = 0; i < TEXT_SLOTS; i++)
        for (struct text *text = symbols->texts[i], *next; text; text = next) {
            next = text->next;
            free(text);
        }
    free(symbols->files);
    for (uint32_t i = 0; symbols->asked && i < symbols->trace->stack_count; i++)
        free(symbols->asked[i].stack.places);
    free(symbols->asked);
    free(symbols->found);
    free(symbols);
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool begins_with_one(const char *text, const char *const *with)
{
    for (; *with; with++)
        if (begins(text, *with))
            return true;
    return false;
}

/* What every program has between its own code and the driver. */
static bool is_machinery(const struct symbols_place *place)
{
    static const char *const modules[] = {"libreprise", "libcuda.",   "libcudart",  "libnvrtc",  "libc.so",
                                          "libc-",      "libpthread", "ld-linux",   "libstdc++", "libgcc_s",
                                          "libffi",     "_ctypes",    "libm.so",    "libpython", "_cffi_backend",
                                          "libunwind",  "python",     "linux-vdso", NULL};
    static const char *const functions[] = {"cuda", "__cuda", "operator new", "cuMem", "cuLaunchKernel", NULL};
    if (place->is_python) /* "<string>": made by a library, as a rule */
        return !place->file || place->file[0] == '<' || strstr(place->file, "/site-packages/") ||
               strstr(place->file, "/dist-packages/") || strstr(place->file, "/lib/python");
    return begins_with_one(place->module, modules) || begins_with_one(place->function, functions) ||
           (place->file && strstr(place->file, "/cuda_runtime.h"));
}

/* Between a launch written <<<>>> and the runtime the compiler puts a stub, and around it a function with the name of
 * the kernel, said to be where the kernel is written. */
static bool is_stub(const struct symbols_place *place)
{
    static const char *const functions[] = {"__device_stub_", "__wrapper__device_stub_", "__cudaLaunchKernel_helper",
                                            NULL};
    return begins_with_one(place->function, functions);
}

/* Where all is machinery: the innermost function in Python, else the innermost place. */
static uint32_t find_any(const struct symbols_stack *stack)
{
    for (uint32_t i = 0; i < stack->count; i++)
        if (stack->places[i]->is_python)
            return i;
    return stack->count ? 0 : TRACE_NONE;
}

static uint32_t find_origin(const struct symbols_stack *stack)
{
    bool was_stub = false;
    for (uint32_t i = 0; i < stack->count; i++) {
        const struct symbols_place *place = stack->places[i];
        bool is_around_stub = was_stub && !is_stub(place);
        was_stub = is_stub(place);
        if (!was_stub && !is_around_stub && !is_machinery(place))
            return i;
    }
    return find_any(stack);
}

static void fill_stack(struct symbols *symbols, const struct trace_frames *frames, struct symbols_stack *stack)
{
    uint32_t capacity = 0;
    stack->origin = TRACE_NONE;
    for (uint32_t i = 0; i < frames->count; i++)
        capacity += find_places(symbols, &frames->frames[i])->count;
    stack->places = calloc(capacity + (size_t)1, sizeof *stack->places);
    for (uint32_t i = 0; stack->places && i < frames->count; i++) {
        const struct found *found = find_places(symbols, &frames->frames[i]);
        for (uint32_t j = 0; j < found->count && stack->count < capacity; j++)
            stack->places[stack->count++] = &found->places[j];
    }
    stack->origin = find_origin(stack);
}

const struct symbols_stack *symbols_stack(struct symbols *symbols, uint32_t number)
{
    struct asked *asked = &symbols->asked[number];
    if (!asked->is_known)
        fill_stack(symbols, &symbols->trace->stacks[number], &asked->stack);
    asked->is_known = true;
    return &asked->stack;
}
