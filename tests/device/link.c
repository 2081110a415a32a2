/* The linker: PTX in, an image out that cuModuleLoadData takes: PTX again. */
#include "tests/device/driver.h"
#include "shim/fatbin.h"
#include "tests/device/context.h"
#include "tests/device/link_text.h"
#include "tests/device/module.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct link {
    enum handle_kind magic;
    struct load_log log;
    struct link_text whole;
};

static CUresult find(CUlinkState handle, struct link **out)
{
    struct link *link = (struct link *)handle;
    if (link == NULL || ((uintptr_t)link & 7) != 0 || link->magic != HANDLE_LINK)
        return CUDA_ERROR_INVALID_HANDLE;
    *out = link;
    return CUDA_SUCCESS;
}

CUresult cuLinkCreate_v2(unsigned int count, CUjit_option *options, void **values, CUlinkState *out)
{
    struct context *context;
    CUresult result = context_enter(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (out == NULL || (count > 0 && (options == NULL || values == NULL)))
        return CUDA_ERROR_INVALID_VALUE;
    struct link *link = calloc(1, sizeof *link);
    if (link == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    link->magic = HANDLE_LINK;
    link->log = load_log_of(count, options, values);
    *out = (CUlinkState)link;
    return CUDA_SUCCESS;
}

CUresult cuLinkCreate(unsigned int count, CUjit_option *options, void **values, CUlinkState *out)
{
    return cuLinkCreate_v2(count, options, values, out);
}

static CUresult refuse(struct link *link, const char *why)
{
    if (link->log.text != NULL && link->log.bytes > 0)
        snprintf(link->log.text, link->log.bytes, "%s", why);
    else
        fprintf(stderr, "cpu device: %s\n", why);
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

static CUresult add_image(struct link *link, CUjitInputType type, const void *image, size_t bytes)
{
    char *text, why[256] = "";
    size_t text_bytes;
    if (image == NULL || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_JIT_INPUT_PTX && type != CU_JIT_INPUT_FATBINARY)
        return refuse(link, "the CPU device links PTX and fatbins that carry it, nothing else");
    CUresult result = module_read_text(image, bytes, &text, &text_bytes, why, sizeof why);
    if (result != CUDA_SUCCESS) {
        refuse(link, why);
        return result;
    }
    link_text_add(&link->whole, text, text_bytes);
    free(text);
    return CUDA_SUCCESS;
}

CUresult cuLinkAddData_v2(CUlinkState handle, CUjitInputType type, void *image, size_t bytes, const char *name,
                          unsigned int count, CUjit_option *options, void **values)
{
    struct link *link;
    (void)name;
    (void)count;
    (void)options;
    (void)values;
    CUresult result = find(handle, &link);
    return result != CUDA_SUCCESS ? result : add_image(link, type, image, bytes);
}

CUresult cuLinkAddData(CUlinkState handle, CUjitInputType type, void *image, size_t bytes, const char *name,
                       unsigned int count, CUjit_option *options, void **values)
{
    return cuLinkAddData_v2(handle, type, image, bytes, name, count, options, values);
}

CUresult cuLinkAddFile_v2(CUlinkState handle, CUjitInputType type, const char *path, unsigned int count,
                          CUjit_option *options, void **values)
{
    struct link *link;
    size_t bytes;
    (void)count;
    (void)options;
    (void)values;
    CUresult result = find(handle, &link);
    if (result != CUDA_SUCCESS)
        return result;
    char *image = path != NULL ? module_read_file(path, &bytes) : NULL;
    if (image == NULL)
        return CUDA_ERROR_FILE_NOT_FOUND;
    result = add_image(link, type, image, bytes);
    free(image);
    return result;
}

CUresult cuLinkAddFile(CUlinkState handle, CUjitInputType type, const char *path, unsigned int count,
                       CUjit_option *options, void **values)
{
    return cuLinkAddFile_v2(handle, type, path, count, options, values);
}

/* The image belongs to the link state. */
CUresult cuLinkComplete(CUlinkState handle, void **image, size_t *bytes)
{
    struct link *link;
    CUresult result = find(handle, &link);
    if (result != CUDA_SUCCESS)
        return result;
    if (image == NULL || link->whole.bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    char why[256] = "";
    result = CUDA_ERROR_INVALID_PTX;
    struct program *program = program_parse(link->whole.text, link->whole.bytes, &result, why, sizeof why);
    if (program == NULL) {
        refuse(link, why);
        return result;
    }
    program_release(program);
    *image = link->whole.text;
    if (bytes != NULL)
        *bytes = link->whole.bytes + 1;
    return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(CUlinkState handle)
{
    struct link *link;
    CUresult result = find(handle, &link);
    if (result != CUDA_SUCCESS)
        return result;
    link->magic = HANDLE_DEAD;
    link_text_free(&link->whole);
    free(link);
    return CUDA_SUCCESS;
}
