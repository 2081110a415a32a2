/* Accesses that are not in the arguments: pointers that lie in memory.
 *
 * Words that look like arena addresses, in what the program copies to the device and in small device buffers
 * that kernels wrote, pin what they point to: it stays in frames, at its address, while it lives. The buffer
 * that holds the pointer remembers whom it reaches, so that an operation which touches the buffer is taken to
 * touch them too. Conservative: a number that looks like a pointer counts as one.
 * Callers hold the engine's turn. */
#pragma once
#include "shim/learn.h"

#define HIDDEN_SCAN_LIMIT (256u << 10) /* larger buffers written by kernels are not scanned */

/* A pointer to `target` was found in `holder` (NULL: somewhere unknown). */
void hidden_note(struct allocation *holder, struct allocation *target, const char *reason);
/* Has something been pinned, since the last call, whose content a plan has dropped? */
bool hidden_took_dropped(void);
/* The payload of a copy to `destination`. */
void hidden_scan_host(const void *host, uint64_t bytes, CUdeviceptr destination);
/* The allocation ends: what it held is forgotten. */
void hidden_forget(struct allocation *holder);
/* Enqueues the scan of an allocation that a kernel may have written. */
void hidden_scan_device(struct allocation *allocation, uint32_t stream);
void hidden_scan_everything(uint32_t stream);
/* Waits for the scans and acts on what they found. */
void hidden_collect(uint32_t stream);
/* Adds to `touches` what the operation reaches through the buffers it touches. */
void hidden_close(struct touches *touches);
