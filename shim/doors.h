/* How calls come in. Each hooked function has one entry per door, all leading to the same hook, so that calls can
 * be counted by the door that they came through.
 *
 *   direct                the exported name (linked with -lcuda, or bound by the dynamic linker)
 *   dlsym, dlvsym         the program looked the name up
 *   cuGetProcAddress[_v2] the driver handed out the function's address and we replaced it
 *
 * What is not ours keeps its meaning: look-ups leave by a tail jump, so that RTLD_NEXT sees the true caller; only
 * whole names of driver.def match; an answer of cuGetProcAddress is recognised by its address, never by name.
 * Counters are never reset; reading them takes no lock. */
#pragma once
#include <stdint.h>

enum door { DOOR_DIRECT, DOOR_DLSYM, DOOR_DLVSYM, DOOR_GET_PROC_ADDRESS, DOOR_GET_PROC_ADDRESS_V2, DOOR_COUNT };

const char *doors_name(enum door door);
uint64_t doors_calls(enum door door);
