/* A small training program, written against a machine: plain memory, or the engine over the fake driver.
 *
 * A block is linear, norm (with running statistics), an activation in place, dropout. Forward keeps what backward
 * reads, no more; gradients of activations are temporaries; everything is freed where autograd would free it. All
 * arithmetic is on 64-bit words, so results can be compared byte by byte, and they never depend on addresses. */
#pragma once
#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NETWORK_MAX_BLOCKS 32
#define NETWORK_NEVER      UINT32_MAX

struct network_settings {
    uint32_t blocks, iterations;
    size_t unit_bytes; /* of one activation */
    /* 0: never */
    uint32_t exception_at;          /* iteration that ends in the middle of its forward pass */
    uint32_t backward_exception_at; /* ... of its backward pass */
    uint32_t evaluate_after;        /* a forward-only pass follows this iteration ... */
    uint32_t evaluate_every;        /* ... or every so many */
    uint32_t small_batch_at;        /* this one has half the batch */
    bool has_noise;                 /* a buffer that a kernel fills otherwise each time, read again in backward */
    bool has_stored_pointer;        /* a buffer that is reached only through a pointer which a kernel stored */
    bool has_copied_pointer;        /* ... which a copy to the device carried */
    bool has_activation_pointer;    /* a kernel stores an activation's address, another one reads through it */
    uint32_t late_pointer_at;       /* in this iteration a copy carries the address of an early activation */
    uint32_t side_from;             /* from this iteration on, and in that one, activations and weights are read ... */
    uint32_t side_at;               /* ... on a second stream as well */
};

struct machine {
    /* Each returns false, and nothing was done, if the machine said an error. */
    bool (*allocate)(uint64_t *address, size_t bytes);
    bool (*release)(uint64_t address);
    bool (*launch)(uint32_t kernel, const void *arguments);
    bool (*copy_in)(uint64_t to, const void *from, size_t bytes);
    bool (*copy_out)(void *to, uint64_t from, size_t bytes);
    bool (*copy)(uint64_t to, uint64_t from, size_t bytes);
    bool (*clear)(uint64_t address, size_t bytes);
    bool (*clear_rows)(uint64_t address, size_t pitch, size_t width, size_t rows);
    bool (*lane)(uint32_t lane);                 /* what follows goes on stream 0 or 1, behind everything so far */
    void (*ended_iteration)(uint32_t iteration); /* may be NULL */
};

struct network_result {
    bool is_complete; /* false: the machine said an error, and the program ended there */
    uint32_t finished_iterations;
    uint64_t losses[64];
    uint64_t corrupt; /* the noise read in backward was not the one that forward made */
    uint64_t state_bytes;
    unsigned char state[1 << 18]; /* all persistent buffers */
};

void network_run(const struct network_settings *settings, const struct machine *machine, struct network_result *result);
/* Frees whatever the last run still holds. False: the machine said an error. */
bool network_free(const struct machine *machine);
bool network_equal(const struct network_result *a, const struct network_result *b);

/* ---- machines ---- */

/* Plain memory. The most bytes that were held at once. */
const struct machine *plain_machine(void);
uint64_t plain_peak_bytes(void);

/* The engine. fake_open must have been called; the stream is where everything goes. Checks the invariants of frames
 * and space, and the cap, after every call. */
struct engine_machine {
    CUstream stream;
    bool is_readable;
    bool is_retrying;   /* a call that was refused is made once more */
    uint64_t cap_bytes; /* 0: not checked */
    void (*ended_iteration)(uint32_t iteration);
};
const struct machine *engine_machine_open(const struct engine_machine *settings);
CUresult engine_machine_error(void);             /* the last */
void engine_machine_use_stream(CUstream stream); /* from here on */
/* How the next launches are presented: under capture, or with arguments that could not be read. */
void engine_machine_present(bool is_captured, bool is_opaque);

/* ---- kernels: name, words of the argument block that are stored and loaded through, as bits; time ---- */
#define NETWORK_KERNELS(K)                                                                                             \
    K(linear_forward, 0x1, 0x6, 20000)                                                                                 \
    K(linear_backward, 0x11, 0x1e, 40000)                                                                              \
    K(norm_forward, 0x5, 0x6, 5000)                                                                                    \
    K(norm_evaluate, 0x1, 0x6, 5000)                                                                                   \
    K(norm_backward, 0x1, 0x6, 5000)                                                                                   \
    K(activate, 0x1, 0x1, 3000)                                                                                        \
    K(activate_backward, 0x1, 0x3, 3000)                                                                               \
    K(dropout_forward, 0x3, 0x4, 4000)                                                                                 \
    K(dropout_backward, 0x1, 0x6, 4000)                                                                                \
    K(loss_forward, 0x1, 0x2, 3000)                                                                                    \
    K(loss_backward, 0x1, 0x6, 3000)                                                                                   \
    K(optimise, 0x3, 0x7, 2000)                                                                                        \
    K(add_mean, 0x1, 0x3, 2000)                                                                                        \
    K(noise, 0x1, 0x0, 3000)                                                                                           \
    K(noise_sum, 0x1, 0x2, 2000)                                                                                       \
    K(noise_check, 0x1, 0x7, 2000)                                                                                     \
    K(store_pointer, 0x1, 0x0, 1000)                                                                                   \
    K(change_through, 0x0, 0x1, 2000)                                                                                  \
    K(read_through, 0x1, 0x3, 2000)                                                                                    \
    K(turn_over, 0x3, 0x6, 4000)                                                                                       \
    K(write_piece, 0x1, 0x2, 3000)                                                                                     \
    K(write_some, 0x1, 0x2, 3000)                                                                                      \
    K(change_piece, 0x1, 0x1, 2000)                                                                                    \
    K(read_piece, 0x1, 0x3, 2000)

enum network_kernel {
#define K(name, stored, loaded, time) NETWORK_##name,
    NETWORK_KERNELS(K)
#undef K
        NETWORK_KERNEL_COUNT
};

/* All kernels take this block; unused words are 0. Those of pieces: `words` rows, of pointers[3] bytes, pointers[4]
 * bytes apart. */
struct network_arguments {
    uint64_t pointers[5];
    uint64_t words;
    uint64_t scalars[2];
};

typedef void network_kernel_run(const void *arguments);
network_kernel_run *network_kernel(uint32_t kernel);
