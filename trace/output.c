#include "trace/output.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where the name leads: through links that are there, and as it is if nothing is. */
static bool follow(const char *path, char *out)
{
    char *real = realpath(path, NULL);
    size_t bytes = strlen(real ? real : path) + 1;
    if (bytes <= OUTPUT_PATH_MOST)
        memcpy(out, real ? real : path, bytes);
    free(real);
    if (bytes > OUTPUT_PATH_MOST)
        errno = ENAMETOOLONG;
    return bytes <= OUTPUT_PATH_MOST;
}

static mode_t mode_of_new(void)
{
    mode_t mask = umask(022);
    umask(mask);
    return 0666 & ~mask;
}

bool output_begin(struct output *output, const char *path, char *why, size_t why_bytes)
{
    struct stat about;
    int descriptor = -1;
    if (!follow(path, output->path))
        goto fail;
    bool is_there = lstat(output->path, &about) == 0;
    if (is_there && !S_ISREG(about.st_mode)) {
        snprintf(why, why_bytes, "it is not a regular file, and stays as it is");
        return false;
    }
    if (snprintf(output->part, sizeof output->part, "%s.XXXXXX", output->path) >= (int)sizeof output->part) {
        errno = ENAMETOOLONG;
        goto fail;
    }
    descriptor = mkstemp(output->part);
    if (descriptor < 0 || fchmod(descriptor, is_there ? about.st_mode & 0777 : mode_of_new()) != 0)
        goto fail;
    close(descriptor);
    return true;
fail:
    snprintf(why, why_bytes, "%s", strerror(errno));
    if (descriptor >= 0) {
        close(descriptor);
        unlink(output->part);
    }
    return false;
}

bool output_end(struct output *output, char *why, size_t why_bytes)
{
    if (rename(output->part, output->path) == 0)
        return true;
    snprintf(why, why_bytes, "%s", strerror(errno));
    output_abandon(output);
    return false;
}

void output_abandon(struct output *output)
{
    unlink(output->part);
}

bool output_fill(const char *part, bool (*write)(FILE *out, const void *context), const void *context, char *why,
                 size_t why_bytes)
{
    errno = 0;
    FILE *out = fopen(part, "w");
    bool has_memory = out && write(out, context);
    bool is_written = has_memory && !ferror(out);
    int error = errno ? errno : EIO;
    if (out && fclose(out) != 0 && is_written) {
        is_written = false;
        error = errno;
    }
    if (!is_written)
        snprintf(why, why_bytes, "%s", strerror(out && !has_memory ? ENOMEM : error));
    return is_written;
}

bool output_is_one_file(const char *a, const char *b)
{
    struct stat left, right;
    if (strcmp(a, b) == 0)
        return true;
    return stat(a, &left) == 0 && stat(b, &right) == 0 && left.st_dev == right.st_dev && left.st_ino == right.st_ino;
}
