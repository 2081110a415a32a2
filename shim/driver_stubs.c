/* One stub per row of driver.def: keeps the arguments, has driver_fill() load the driver, then jumps to what
 * the slot holds. A stub knows its row by the order in which driver.def is expanded (the assembler counts). */

__asm__(".set stub_row, 0\n");

#if defined(__x86_64__)

/* r11 = row. At a function's first instruction r10, r11 and rax (but for variadic calls) are free. */
__asm__(".text\n"
        ".p2align 4\n"
        ".type driver_stub_common, @function\n"
        "driver_stub_common:\n"
        ".cfi_startproc\n"
        "push %rdi\n .cfi_adjust_cfa_offset 8\n"
        "push %rsi\n .cfi_adjust_cfa_offset 8\n"
        "push %rdx\n .cfi_adjust_cfa_offset 8\n"
        "push %rcx\n .cfi_adjust_cfa_offset 8\n"
        "push %r8\n .cfi_adjust_cfa_offset 8\n"
        "push %r9\n .cfi_adjust_cfa_offset 8\n"
        "sub $136, %rsp\n .cfi_adjust_cfa_offset 136\n"
        "movups %xmm0, (%rsp)\n"
        "movups %xmm1, 16(%rsp)\n"
        "movups %xmm2, 32(%rsp)\n"
        "movups %xmm3, 48(%rsp)\n"
        "movups %xmm4, 64(%rsp)\n"
        "movups %xmm5, 80(%rsp)\n"
        "movups %xmm6, 96(%rsp)\n"
        "movups %xmm7, 112(%rsp)\n"
        "mov %r11d, %edi\n"
        "call driver_fill\n"
        "mov %rax, %r11\n"
        "movups (%rsp), %xmm0\n"
        "movups 16(%rsp), %xmm1\n"
        "movups 32(%rsp), %xmm2\n"
        "movups 48(%rsp), %xmm3\n"
        "movups 64(%rsp), %xmm4\n"
        "movups 80(%rsp), %xmm5\n"
        "movups 96(%rsp), %xmm6\n"
        "movups 112(%rsp), %xmm7\n"
        "add $136, %rsp\n .cfi_adjust_cfa_offset -136\n"
        "pop %r9\n .cfi_adjust_cfa_offset -8\n"
        "pop %r8\n .cfi_adjust_cfa_offset -8\n"
        "pop %rcx\n .cfi_adjust_cfa_offset -8\n"
        "pop %rdx\n .cfi_adjust_cfa_offset -8\n"
        "pop %rsi\n .cfi_adjust_cfa_offset -8\n"
        "pop %rdi\n .cfi_adjust_cfa_offset -8\n"
        "jmp *%r11\n"
        ".cfi_endproc\n"
        ".size driver_stub_common, . - driver_stub_common\n");

#define STUB_BODY "mov $stub_row, %r11d\n jmp driver_stub_common\n"

#elif defined(__aarch64__)

/* x17 = row; x16 and x17 are free at a function's first instruction. */
__asm__(".text\n"
        ".p2align 4\n"
        ".type driver_stub_common, %function\n"
        "driver_stub_common:\n"
        ".cfi_startproc\n"
        "stp x29, x30, [sp, #-224]!\n .cfi_adjust_cfa_offset 224\n .cfi_rel_offset x29, 0\n .cfi_rel_offset x30, 8\n"
        "mov x29, sp\n"
        "stp x0, x1, [sp, #16]\n"
        "stp x2, x3, [sp, #32]\n"
        "stp x4, x5, [sp, #48]\n"
        "stp x6, x7, [sp, #64]\n"
        "str x8, [sp, #80]\n"
        "stp q0, q1, [sp, #96]\n"
        "stp q2, q3, [sp, #128]\n"
        "stp q4, q5, [sp, #160]\n"
        "stp q6, q7, [sp, #192]\n"
        "mov w0, w17\n"
        "bl driver_fill\n"
        "mov x16, x0\n"
        "ldp q0, q1, [sp, #96]\n"
        "ldp q2, q3, [sp, #128]\n"
        "ldp q4, q5, [sp, #160]\n"
        "ldp q6, q7, [sp, #192]\n"
        "ldr x8, [sp, #80]\n"
        "ldp x0, x1, [sp, #16]\n"
        "ldp x2, x3, [sp, #32]\n"
        "ldp x4, x5, [sp, #48]\n"
        "ldp x6, x7, [sp, #64]\n"
        "ldp x29, x30, [sp], #224\n .cfi_adjust_cfa_offset -224\n .cfi_restore x29\n .cfi_restore x30\n"
        "br x16\n"
        ".cfi_endproc\n"
        ".size driver_stub_common, . - driver_stub_common\n");

#define STUB_BODY "mov w17, #stub_row\n b driver_stub_common\n"

#else
#error "add stubs for this processor"
#endif

#define FN(name, since, verb)                                                                                          \
    __asm__(".globl stub_" #name "\n"                                                                                  \
            ".hidden stub_" #name "\n"                                                                                 \
            ".type stub_" #name ", STT_FUNC\n"                                                                         \
            "stub_" #name ":\n" STUB_BODY ".set stub_row, stub_row + 1\n");
#include "shim/driver.def"
#undef FN
