#include "tests/device/runtime/runtime.h"

struct error_text {
    int code;
    const char *name, *text;
};

static const struct error_text errors[] = {
#define DRIVER(code, name, text)
#define RUNTIME(code, name, text) {code, #name, text},
#include "tests/device/errors.def"
#undef DRIVER
#undef RUNTIME
};

static const struct error_text *find(cudaError_t error)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == (int)error)
            return &errors[i];
    return NULL;
}

const char *cudaGetErrorName(cudaError_t error)
{
    const struct error_text *found = find(error);
    return found != NULL ? found->name : "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
    const struct error_text *found = find(error);
    return found != NULL ? found->text : "unrecognized error code";
}
