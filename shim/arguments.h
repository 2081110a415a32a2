/* A kernel's arguments, in either of the forms that a program may give them, as one block of bytes. */
#pragma once
#include "shim/launch.h"

/* Bytes of the block; -1 if the arguments cannot be read (a form of unknown layout). */
int64_t arguments_bytes(const struct function_facts *facts, void **parameters, void **extra);

/* Fills the block, arguments_bytes(...) long. */
void arguments_read(const struct function_facts *facts, void **parameters, void **extra, unsigned char *block);

/* Pins every allocation that the arguments point to. *is_read says whether they could be read at all; if not,
 * nothing was done and CUDA_SUCCESS comes back. */
CUresult arguments_pin(CUfunction function, void **parameters, void **extra, const char *reason, bool *is_read);
