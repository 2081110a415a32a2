/* cuGetProcAddress: a function by its plain name, the CUDA version the caller was built for, and whether it
 * wants the per-thread-stream variants. */
#include "tests/device/driver.h"
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum variant { PLAIN, PER_THREAD };

struct export
{
    const char *name; /* as callers ask */
    int version;      /* the first CUDA version that has this form */
    enum variant variant;
    void *address;
};

static const struct export exports[] = {
#define EXPORT(symbol, name, version, variant, state) {#name, version, variant, (void *)symbol},
#include "tests/device/exports.def"
#undef EXPORT
};

#define EXPORTS (sizeof exports / sizeof *exports)

/* The newest form of the variant that is not newer than the version; *is_named: the name exists at all. */
static const struct export *find(const char *name, int version, enum variant variant, bool *is_named)
{
    const struct export *best = NULL;
    for (size_t i = 0; i < EXPORTS; i++) {
        if (exports[i].variant != variant || strcmp(exports[i].name, name) != 0)
            continue;
        *is_named = true;
        if (exports[i].version > version || (best != NULL && exports[i].version <= best->version))
            continue;
        best = &exports[i];
    }
    return best;
}

#define KNOWN_FLAGS (CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)

static CUresult look_up(const char *name, void **address, int version, cuuint64_t flags,
                        CUdriverProcAddressQueryResult *status)
{
    if (name == NULL || address == NULL || version > DRIVER_VERSION + 999 || (flags & ~(cuuint64_t)KNOWN_FLAGS) != 0 ||
        flags == KNOWN_FLAGS)
        return CUDA_ERROR_INVALID_VALUE;
    bool is_named = false;
    const struct export *found = NULL;
    if (flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
        found = find(name, version, PER_THREAD, &is_named);
    if (found == NULL)
        found = find(name, version, PLAIN, &is_named);
    *address = found != NULL ? found->address : NULL;
    *status = found != NULL ? CU_GET_PROC_ADDRESS_SUCCESS
              : is_named    ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                            : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return CUDA_SUCCESS;
}

CUresult cuGetProcAddress_v2(const char *name, void **address, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status)
{
    CUdriverProcAddressQueryResult unused;
    return look_up(name, address, version, flags, status != NULL ? status : &unused);
}

/* The form of 11.3 has no status: not found is an error. */
CUresult cuGetProcAddress(const char *name, void **address, int version, cuuint64_t flags)
{
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    CUresult result = look_up(name, address, version, flags, &status);
    if (result == CUDA_SUCCESS && status != CU_GET_PROC_ADDRESS_SUCCESS)
        return CUDA_ERROR_NOT_FOUND;
    return result;
}

/* Undocumented tables: there are none here. The static CUDA runtime takes that for a missing symbol and gives up, so
 * the first table that is asked for is told. */
CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
    static atomic_flag was_said = ATOMIC_FLAG_INIT;
    if (table == NULL || id == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *table = NULL;
    if (!atomic_flag_test_and_set(&was_said)) {
        char digits[33];
        for (size_t i = 0; i < sizeof id->bytes; i++)
            snprintf(digits + 2 * i, 3, "%02x", (unsigned char)id->bytes[i]);
        fprintf(stderr,
                "cpu device: the undocumented driver table %s was asked for and is not here: the CUDA runtime in its "
                "static form cannot do without\n",
                digits);
    }
    return CUDA_ERROR_NOT_FOUND;
}
