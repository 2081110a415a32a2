/* links: shim/fatbin.c */
/* Damaged containers into the fatbin reader. */
#include "shim/fatbin.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/fatbin_samples.h"
#include <stdlib.h>

const char *const fuzz_tokens[] = {"\x50\xed\x55\xba", "\x28\xb5\x2f\xfd", "\xff\xff\xff\xff", "\xff\xff\xff\x7f",
                                   NULL};

void fuzz_feed(const unsigned char *bytes, size_t count)
{
    struct fatbin fatbin;
    struct fatbin_entry entry;
    if (image_kind(bytes, count) == IMAGE_WRAPPER || /* its pointer would be a random one */
        !fatbin_open(bytes, count, &fatbin))
        return;
    while (fatbin_next(&fatbin, &entry)) {
        char why[200];
        size_t text_bytes;
        free(fatbin_text(&entry, &text_bytes, why, sizeof why));
    }
}

void fuzz_write_samples(const char *directory)
{
    fuzz_write_file(directory, "lz4", sample_speed, sizeof sample_speed);
    fuzz_write_file(directory, "zstd", sample_size, sizeof sample_size);
}
