/* PTX files that carry their inputs and expected outputs in comments, run through program.h alone, without a driver.
 *
 *   //! run NAME block=32 [grid=1] [shared=0] [seed=0]
 *   //! in TYPE: 0x1 -2 ...          a buffer with these words; its address is the next parameter
 *   //! value TYPE: 5                the next parameter itself
 *   //! out TYPE: 0x1 nan * 0x3f800000~2 ...   a buffer of zeros; what it must hold after the kernel:
 *                                    bits, any NaN, anything, bits within 2 units in the last place
 *   //! inout TYPE: 1 2 > 2 3        a buffer with the words before '>', which then holds those behind
 *   //! fault CODE                   the kernel must end with this CUresult
 *   //! refused TEXT                 the entry must be refused, with a reason that holds TEXT */
#pragma once

/* Prints one line per difference. Returns how many there were, and how many things were compared. */
unsigned conformance_run(const char *path, unsigned *checked);
