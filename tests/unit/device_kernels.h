/* PTX for tests of the driver, written by hand. */
#pragma once

/* store(p, v): *p = v.   count(p): atomic add 1.   late(p, n): adds up n numbers, then stores the sum.
 * many(struct of 5 bytes, u64): for the layout of parameters. */
static const char test_ptx[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
    ".visible .global .align 4 .u32 answer = 42;\n"
    ".visible .entry store(.param .u64 p, .param .u32 v) {\n"
    "  .reg .b64 %rd<3>; .reg .b32 %r<2>;\n"
    "  ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [v];\n"
    "  st.u32 [%rd1], %r1;\n  ret;\n}\n"
    ".visible .entry count(.param .u64 p) {\n"
    "  .reg .b64 %rd<3>; .reg .b32 %r<2>;\n"
    "  ld.param.u64 %rd1, [p];\n"
    "  atom.add.u32 %r1, [%rd1], 1;\n  ret;\n}\n"
    ".visible .entry read_answer(.param .u64 p) {\n"
    "  .reg .b64 %rd<3>; .reg .b32 %r<2>;\n"
    "  ld.param.u64 %rd1, [p]; ld.global.u32 %r1, [answer];\n"
    "  st.u32 [%rd1], %r1;\n  ret;\n}\n"
    ".visible .entry many(.param .align 1 .b8 s[5], .param .u64 p, .param .u16 h) {\n  ret;\n}\n"
    ".visible .entry die() {\n  trap;\n}\n";
