/* nvJitLink for the CPU device: links PTX, and what it gives as the linked cubin is PTX as well, which is the only
 * code that the device loads. NVIDIA's library makes cubins; with this one in front of it a program that links at run
 * time finds what it can run.
 *
 * It says version 12.2: older than what frameworks take for link-time optimisation, since LTO-IR can be read by
 * NVIDIA's library alone. They then hand out PTX, here or to cuLink*. Every other kind of input is refused.
 *
 * A handle belongs to one thread at a time, as documented. Declared here: NVIDIA's header is not needed to build. */
#include "tests/device/link_text.h"
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define VERSION_MAJOR 12
#define VERSION_MINOR 2

enum result {
    SUCCESS = 0,
    UNRECOGNIZED_OPTION = 1,
    MISSING_ARCH = 2,
    INVALID_INPUT = 3,
    INTERNAL = 6,
    UNRECOGNIZED_INPUT = 8,
    NULL_INPUT = 10,
    LTO_NOT_ENABLED = 18
};

enum input { INPUT_PTX = 2, INPUT_ANY = 10 };

struct link {
    struct link_text whole;
    bool is_complete;
    char log[512];
};

static enum result fail(struct link *link, enum result result, const char *why)
{
    snprintf(link->log, sizeof link->log, "the CPU device's nvJitLink: %s\n", why);
    return result;
}

static enum result create(struct link **out, uint32_t count, const char *const *options)
{
    bool has_arch = false;
    if (out == NULL || (count > 0 && options == NULL))
        return INVALID_INPUT;
    for (uint32_t i = 0; i < count; i++) {
        if (options[i] == NULL || options[i][0] != '-')
            return UNRECOGNIZED_OPTION;
        has_arch |= strncmp(options[i], "-arch=", 6) == 0;
        if (strcmp(options[i], "-lto") == 0)
            return LTO_NOT_ENABLED;
    }
    if (!has_arch)
        return MISSING_ARCH;
    *out = calloc(1, sizeof **out);
    return *out != NULL ? SUCCESS : INTERNAL;
}

static enum result destroy(struct link **link)
{
    if (link == NULL || *link == NULL)
        return INVALID_INPUT;
    link_text_free(&(*link)->whole);
    free(*link);
    *link = NULL;
    return SUCCESS;
}

static enum result add_data(struct link *link, enum input type, const void *data, size_t size, const char *name)
{
    (void)name;
    if (link == NULL || link->is_complete)
        return INVALID_INPUT;
    if (data == NULL || size == 0)
        return NULL_INPUT;
    const char *text = data;
    size_t bytes = strnlen(text, size);
    bool is_text = bytes + 1 >= size && text[0] != '\177';
    if ((type != INPUT_PTX && type != INPUT_ANY) || !is_text)
        return fail(link, UNRECOGNIZED_INPUT,
                    "only PTX can be linked here, no LTO-IR, cubin, fatbin, object or library");
    link_text_add(&link->whole, text, bytes);
    return SUCCESS;
}

static enum result add_file(struct link *link, enum input type, const char *path)
{
    struct stat status;
    enum result result = INVALID_INPUT;
    char *bytes = NULL;
    if (link == NULL || path == NULL)
        return INVALID_INPUT;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0 && fstat(file, &status) == 0 && status.st_size > 0)
        bytes = malloc((size_t)status.st_size);
    if (bytes != NULL && read(file, bytes, (size_t)status.st_size) == status.st_size)
        result = add_data(link, type, bytes, (size_t)status.st_size, path);
    else
        fail(link, result, "the file cannot be read");
    free(bytes);
    if (file >= 0)
        close(file);
    return result;
}

/* Errors in the text show when it is loaded, with their lines. */
static enum result complete(struct link *link)
{
    if (link == NULL || link->is_complete)
        return INVALID_INPUT;
    if (link->whole.bytes == 0)
        return fail(link, INVALID_INPUT, "nothing was added");
    link->is_complete = true;
    return SUCCESS;
}

static enum result linked_size(const struct link *link, size_t *size)
{
    if (link == NULL || size == NULL || !link->is_complete)
        return INVALID_INPUT;
    *size = link->whole.bytes + 1;
    return SUCCESS;
}

static enum result linked(const struct link *link, char *out)
{
    if (link == NULL || out == NULL || !link->is_complete)
        return INVALID_INPUT;
    memcpy(out, link->whole.text, link->whole.bytes + 1);
    return SUCCESS;
}

static enum result error_log_size(const struct link *link, size_t *size)
{
    if (link == NULL || size == NULL)
        return INVALID_INPUT;
    *size = strlen(link->log) + 1;
    return SUCCESS;
}

static enum result error_log(const struct link *link, char *out)
{
    if (link == NULL || out == NULL)
        return INVALID_INPUT;
    memcpy(out, link->log, strlen(link->log) + 1);
    return SUCCESS;
}

static enum result info_log_size(const struct link *link, size_t *size)
{
    if (link == NULL || size == NULL)
        return INVALID_INPUT;
    *size = 1;
    return SUCCESS;
}

static enum result info_log(const struct link *link, char *out)
{
    if (link == NULL || out == NULL)
        return INVALID_INPUT;
    *out = '\0';
    return SUCCESS;
}

__attribute__((visibility("default"))) enum result nvJitLinkVersion(unsigned *major, unsigned *minor);

enum result nvJitLinkVersion(unsigned *major, unsigned *minor)
{
    if (major == NULL || minor == NULL)
        return INVALID_INPUT;
    *major = VERSION_MAJOR;
    *minor = VERSION_MINOR;
    return SUCCESS;
}

/* Every function has its plain name and, for programs built with NVIDIA's header, one per minor version of 13. */
#define NAME(symbol, own) extern __typeof__(own) symbol __attribute__((alias(#own), visibility("default")));
#define NAMES(symbol, own)                                                                                             \
    NAME(symbol, own)                                                                                                  \
    NAME(__##symbol##_13_0, own)                                                                                       \
    NAME(__##symbol##_13_1, own)                                                                                       \
    NAME(__##symbol##_13_2, own)                                                                                       \
    NAME(__##symbol##_13_3, own)                                                                                       \
    NAME(__##symbol##_13_4, own)                                                                                       \
    NAME(__##symbol##_13_5, own)

NAMES(nvJitLinkCreate, create)
NAMES(nvJitLinkDestroy, destroy)
NAMES(nvJitLinkAddData, add_data)
NAMES(nvJitLinkAddFile, add_file)
NAMES(nvJitLinkComplete, complete)
NAMES(nvJitLinkGetLinkedCubinSize, linked_size)
NAMES(nvJitLinkGetLinkedCubin, linked)
NAMES(nvJitLinkGetLinkedPtxSize, linked_size)
NAMES(nvJitLinkGetLinkedPtx, linked)
NAMES(nvJitLinkGetErrorLogSize, error_log_size)
NAMES(nvJitLinkGetErrorLog, error_log)
NAMES(nvJitLinkGetInfoLogSize, info_log_size)
NAMES(nvJitLinkGetInfoLog, info_log)
