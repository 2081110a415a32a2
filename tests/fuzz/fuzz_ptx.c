/* links: tests/device/ptx_%.c */
/* Damaged PTX into the reader and the writer of C, which must refuse it or take it, and never fall over. */
#include "tests/device/ptx.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

const char *const fuzz_tokens[] = {";",          "{",
                                   "}",          "[",
                                   "]",          "(",
                                   ")",          ",",
                                   "@",          "!",
                                   "|",          "-",
                                   "<",          ">",
                                   "=",          "4294967296",
                                   "-1",         "0x7fffffffffffffff",
                                   "0f3F8",      "%r1",
                                   "%p1",        "%rd1",
                                   "_",          ".reg",
                                   ".shared",    ".param",
                                   ".b128",      ".pred",
                                   ".v4",        ".local",
                                   ".func",      "bar.sync",
                                   "call",       "ret",
                                   "brx.idx",    "/*",
                                   "<99999999>", "[1000000000]",
                                   ".align 3",   "mov.b64",
                                   "ld.v4.f32",  "shfl.sync.idx.b32",
                                   NULL};

static void emit_entries(struct ptx_module *module)
{
    char why[400];
    struct ptx_text c = {0};
    for (struct ptx_function *f = module->functions; f; f = f->next) {
        struct ptx_layout layout;
        if (!f->is_entry || !f->has_body)
            continue;
        ptx_layout_entry(module, f, &layout);
        ptx_emit_entry(module, f, &c, why, sizeof why);
    }
    text_release(&c);
}

void fuzz_feed(const unsigned char *bytes, size_t count)
{
    CUresult error;
    char why[400] = "";
    struct ptx_module *module = ptx_parse((const char *)bytes, count, &error, why, sizeof why);
    if (!module && (error == CUDA_SUCCESS || !*why))
        abort();
    if (!module)
        return;
    emit_entries(module);
    ptx_module_release(module);
}

void fuzz_write_samples(const char *directory)
{
    (void)directory; /* tests/ptx holds them */
}
