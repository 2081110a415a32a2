/* links: tests/fuzz/mutate.c shim/code.c shim/code_text.c shim/code_steps.c shim/code_flow.c shim/fatbin.c */
/* Damaged PTX into the code reader. */
#include "shim/code.h"
#include "shim/launch.h"
#include "tests/fuzz/mutate.h"
#include <stdlib.h>
#include <string.h>

static const char *const tokens[] = {"{",
                                     "}",
                                     "[",
                                     "]",
                                     "(",
                                     ")",
                                     ";",
                                     ",",
                                     ".",
                                     "@",
                                     "%",
                                     "/*",
                                     "*/",
                                     "//",
                                     "\"",
                                     "-",
                                     "0x",
                                     "call",
                                     "ld.param.u64",
                                     "st.global.u32",
                                     ".param .b8 x[99999999]",
                                     ".entry",
                                     ".func",
                                     "mov",
                                     "%rd1",
                                     "cvta.param",
                                     "|",
                                     "_",
                                     ":",
                                     "st.shared",
                                     "cp.async.bulk.tensor",
                                     "[%rd1,{%r1}]",
                                     "99999999999999999999",
                                     "add.s64",
                                     ".global .u32",
                                     NULL};

static char names[128][256];
static size_t name_count;

static void find_kernels(const char *text)
{
    for (const char *at = text; name_count < 128 && (at = strstr(at, ".entry ")); name_count++) {
        at += 7;
        size_t length = strcspn(at, "(");
        memcpy(names[name_count], at, length < 255 ? length : 255);
    }
}

static void fill(const struct code_facts *facts)
{
    struct function_facts out;
    uint32_t offsets[64], sizes[64];
    if (facts->param_count > 64)
        return;
    for (uint32_t i = 0; i < facts->param_count; i++) {
        offsets[i] = facts->params[i].offset;
        sizes[i] = facts->params[i].bytes;
    }
    code_fill_facts(facts, facts->param_count, offsets, sizes, &out);
}

static void feed(const unsigned char *bytes, size_t count)
{
    struct code *code = code_read((const char *)bytes, count);
    for (size_t i = 0; code && i < name_count; i++) {
        const struct code_facts *facts = code_find(code, names[i]);
        if (facts)
            fill(facts);
    }
    code_release(code);
}

int main(int argc, char **argv)
{
    struct mutate_target target = {.tokens = tokens, .feed = feed};
    unsigned char *sample = mutate_read("tests/unit/samples/code.ptx", &target.sample_bytes);
    sample[target.sample_bytes] = '\0';
    find_kernels((const char *)sample);
    target.sample = sample;
    int status = mutate_run(argc, argv, &target);
    free(sample);
    return status;
}
