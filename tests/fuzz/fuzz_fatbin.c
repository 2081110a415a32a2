/* links: tests/fuzz/mutate.c shim/fatbin.c */
/* Damaged containers into the fatbin reader; `-z` as last argument: the zstd sample, else the LZ4 one. */
#include "shim/fatbin.h"
#include "tests/fuzz/mutate.h"
#include "tests/unit/fatbin_samples.h"
#include <stdlib.h>
#include <string.h>

static void feed(const unsigned char *bytes, size_t count)
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

int main(int argc, char **argv)
{
    struct mutate_target target = {.sample = sample_speed, .sample_bytes = sizeof sample_speed, .feed = feed};
    if (argc > 1 && strcmp(argv[argc - 1], "-z") == 0) {
        target.sample = sample_size;
        target.sample_bytes = sizeof sample_size;
        argc--;
    }
    return mutate_run(argc, argv, &target);
}
