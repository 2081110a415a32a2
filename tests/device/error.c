#include "tests/device/driver.h"
#include <stdlib.h>

struct error_text {
    int code;
    const char *name, *text;
};

static const struct error_text errors[] = {
#define DRIVER(code, name, text) {code, #name, text},
#define RUNTIME(code, name, text)
#include "tests/device/errors.def"
#undef DRIVER
#undef RUNTIME
};

static int compare(const void *code, const void *entry)
{
    int wanted = *(const int *)code, there = ((const struct error_text *)entry)->code;
    return (wanted > there) - (wanted < there);
}

static const struct error_text *find(CUresult error)
{
    int code = (int)error;
    return bsearch(&code, errors, sizeof errors / sizeof *errors, sizeof *errors, compare);
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    const struct error_text *found = find(error);
    if (text == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *text = found != NULL ? found->text : NULL;
    return found != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
    const struct error_text *found = find(error);
    if (name == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *name = found != NULL ? found->name : NULL;
    return found != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
