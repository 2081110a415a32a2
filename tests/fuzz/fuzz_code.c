/* links: shim/code.c shim/code_text.c shim/code_steps.c shim/code_flow.c shim/fatbin.c */
/* Damaged PTX into the code reader. */
#include "shim/code.h"
#include "shim/launch.h"
#include "tests/fuzz/fuzz.h"
#include <string.h>

const char *const fuzz_tokens[] = {"{",
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

/* Every name that stands behind `.entry ` in the input is asked for. */
static void ask(struct code *code, const char *text, size_t count)
{
    static const char mark[] = ".entry ";
    for (const char *at = text, *end = text + count; (at = memmem(at, (size_t)(end - at), mark, sizeof mark - 1));) {
        char name[256];
        size_t length = 0;
        at += sizeof mark - 1;
        while (length < sizeof name - 1 && at + length < end && at[length] && !strchr("( \n", at[length]))
            length++;
        memcpy(name, at, length);
        name[length] = '\0';
        const struct code_facts *facts = code_find(code, name);
        if (facts)
            fill(facts);
    }
}

void fuzz_feed(const unsigned char *bytes, size_t count)
{
    struct code *code = code_read((const char *)bytes, count);
    if (code)
        ask(code, (const char *)bytes, count);
    code_release(code);
}

void fuzz_write_samples(const char *directory)
{
    (void)directory; /* tests/unit/samples and tests/ptx hold them */
}
