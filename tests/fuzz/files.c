#include "tests/fuzz/fuzz.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

void fuzz_write_file(const char *directory, const char *name, const void *bytes, size_t count)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, count, file) != count || fclose(file) != 0) {
        fprintf(stderr, "%s: cannot be written\n", path);
        exit(2);
    }
}
