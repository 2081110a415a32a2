#include "shim/arguments.h"

#include "shim/engine.h"
#include "shim/functions.h"

#include <string.h>

#include "shim/inside.h"

/* Extra options end with CU_LAUNCH_PARAM_END; each has one value. */
static bool find_buffer(void **extra, const unsigned char **buffer, size_t *bytes)
{
    const size_t *size = NULL;
    *buffer = NULL;
    for (; extra && extra[0] != CU_LAUNCH_PARAM_END; extra += 2) {
        if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            *buffer = extra[1];
        else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE)
            size = extra[1];
        else
            return false;
    }
    *bytes = size ? *size : 0;
    return *buffer != NULL && size != NULL;
}

int64_t arguments_bytes(const struct function_facts *facts, void **parameters, void **extra)
{
    const unsigned char *buffer;
    size_t bytes;
    if (extra)
        return find_buffer(extra, &buffer, &bytes) && bytes <= LAUNCH_MAX_ARGUMENT_BYTES ? (int64_t)bytes : -1;
    if (!facts->has_param_info)
        return parameters ? -1 : 0;
    return parameters || facts->param_count == 0 ? (int64_t)facts->argument_bytes : -1;
}

/* Nearly all are pointers and numbers: no call for those. */
static void copy_parameter(unsigned char *to, const void *from, uint32_t bytes)
{
    if (bytes == 8)
        memcpy(to, from, 8);
    else if (bytes == 4)
        memcpy(to, from, 4);
    else
        memcpy(to, from, bytes);
}

void arguments_read(const struct function_facts *facts, void **parameters, void **extra, unsigned char *block)
{
    const unsigned char *buffer;
    size_t bytes;
    if (extra) {
        if (find_buffer(extra, &buffer, &bytes))
            memcpy(block, buffer, bytes);
        return;
    }
    memset(block, 0, facts->argument_bytes); /* the gaps: the same launch gives the same bytes */
    const struct parameter *parameter = functions_parameters(facts);
    for (uint32_t i = 0; i < facts->param_count; i++)
        copy_parameter(block + parameter[i].offset, parameters[i], parameter[i].bytes);
}

CUresult arguments_pin(CUfunction function, void **parameters, void **extra, const char *reason, bool *is_read)
{
    const struct function_facts *facts = launch_facts(function);
    int64_t bytes = arguments_bytes(facts, parameters, extra);
    *is_read = bytes >= 0;
    if (bytes <= 0)
        return CUDA_SUCCESS;
    unsigned char block[bytes];
    arguments_read(facts, parameters, extra, block);
    for (int64_t at = 0; at + (int64_t)sizeof(CUdeviceptr) <= bytes; at += (int64_t)sizeof(CUdeviceptr)) {
        CUdeviceptr word;
        memcpy(&word, block + at, sizeof word);
        CUresult result = engine_owns(word) ? engine_pin(word, reason) : CUDA_SUCCESS;
        if (result != CUDA_SUCCESS)
            return result;
    }
    return CUDA_SUCCESS;
}
