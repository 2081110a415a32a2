/* Page-locked host memory: the device may touch it, at the address the host uses. */
#pragma once
#include "tests/device/driver.h"

struct host_range {
    uintptr_t base;
    size_t bytes;
    unsigned flags;
    bool is_registered; /* the program's own memory, by cuMemHostRegister */
};

/* The range that holds the address; false: pageable, or not host memory at all. */
bool host_memory_find(const void *address, struct host_range *out);
