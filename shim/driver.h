/* The real driver: one typed slot per row of driver.def. `driver.cuMemAlloc_v2(...)` calls NVIDIA's (or the
 * device's) own function, never a hook.
 *
 * Loading. Slots start as stubs that load the driver at their first call and go on, so nobody asks whether it is
 * loaded and no constructor runs. Threads that arrive while another one loads wait for it. The loading thread
 * itself, when the driver's own start-up comes back to us, is refused with CUDA_ERROR_NOT_INITIALIZED: waiting
 * would be the known deadlock. Without a driver every call answers CUDA_ERROR_NO_DEVICE, and one line says why.
 * A function that this driver does not have answers CUDA_ERROR_NOT_SUPPORTED: DRIVER_HAS tells beforehand.
 *
 * driver.c is the only caller of the real dlopen, dlsym and dlvsym. Tests replace slots by fakes. */
#pragma once
#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct driver {
#define FN(name, since, verb) __typeof__(name) *name;
#include "shim/driver.def"
#undef FN
};

enum driver_index {
#define FN(name, since, verb) DRIVER_##name,
#include "shim/driver.def"
#undef FN
    DRIVER_COUNT
};

extern struct driver driver;

/* Loads the driver if that has not been done. False: there is none (or this thread is loading it). */
bool driver_load(void);

/* Loads the driver and tells whether it has the function. */
bool driver_has(enum driver_index index);
#define DRIVER_HAS(name) driver_has(DRIVER_##name)

/* Row whose function has this address in the loaded driver, whether as exported or as its own
 * cuGetProcAddress hands it out; -1: none, or no driver loaded. */
int driver_find_address(const void *address);

/* The linker's own functions, past every override. */
void *driver_dlopen(const char *name, int flags);
void *driver_dlsym(void *handle, const char *name);

/* Is a libcuda in this process, whoever loaded it? */
bool driver_is_present(void);
