#pragma once

/* printf of a kernel: `arguments` are packed, each aligned to its size. To stdout in one write. Returns how many
 * arguments were used, or a negative number for a bad format. */
int ptx_print(const char *format, const void *arguments);
