/* Reader of fatbin containers: the form in which nvcc's programs and CUDA's libraries carry device code.
 *
 * Layout, little-endian throughout:
 *   wrapper     u32 magic 0x466243b1, u32 version, pointer to the container, ...   (__cudaRegisterFatBinary)
 *   container   u32 magic 0xba55ed50, u16 version, u16 header bytes, u64 bytes that follow the header
 *   entry       u16 kind, u16 version, u32 header bytes, u64 payload bytes (padded), then from offset 16:
 *               u32 compressed bytes (0: plain), ..., 24: u16 minor, u16 major, 28: u32 target,
 *               40: u64 flags, 56: u64 uncompressed bytes
 *
 * Invariants: nothing outside the container (or `known_bytes`, if less) is ever read, whatever its contents;
 * no entry of a broken container is returned past the point where it broke. Nothing here calls CUDA.
 * Text is allocated with malloc: modules are loaded outside the hooks' no-malloc zone, so do not call
 * fatbin_text while holding the engine's turn.
 *
 * Decompressors: zstd is linked statically (-l:libzstd.a), so that a preloaded library that contains this
 * file needs nothing that a child process might lack. LZ4's block format is decoded here. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum image_kind { IMAGE_UNKNOWN, IMAGE_FATBIN, IMAGE_WRAPPER, IMAGE_ELF, IMAGE_TEXT };

/* What a pointer given to cuModuleLoadData / cuLibraryLoadData points at, judged by its first bytes. Reads at
 * most min(8, known_bytes) bytes. Pass SIZE_MAX if the size is unknown. Text is anything that starts with a
 * printable character or white space. */
enum image_kind image_kind(const void *image, size_t known_bytes);

enum fatbin_kind { FATBIN_PTX = 1, FATBIN_CUBIN = 2 };

#define FATBIN_FLAG_LZ4  0x2000u
#define FATBIN_FLAG_ZSTD 0x8000u

struct fatbin { /* what is left to read */
    const unsigned char *next, *end;
    bool is_broken; /* an entry did not fit: there may have been more */
};

struct fatbin_entry {
    uint32_t kind;         /* enum fatbin_kind, or a kind that we do not know */
    uint32_t target;       /* 75 = sm_75 or compute_75 */
    uint32_t major, minor; /* version of the PTX language, for PTX */
    uint64_t flags;
    const unsigned char *payload; /* as stored */
    size_t payload_bytes;         /* as stored, padding left out where the compressed size is known */
    size_t plain_bytes;           /* after decompression */
};

/* Starts reading the container at `image`; follows one wrapper. `known_bytes` bounds the container (SIZE_MAX if
 * unknown: then its own header is believed). False if it is none. */
bool fatbin_open(const void *image, size_t known_bytes, struct fatbin *out);

/* Next entry; false at the end, and for good at the first entry that does not fit. */
bool fatbin_next(struct fatbin *fatbin, struct fatbin_entry *out);

/* The entry's payload, decompressed, followed by a NUL that *bytes does not count; for PTX, padding and the
 * NULs of the file are not counted either. To be released with free(). NULL with one line in `why` if it
 * cannot be decompressed or memory is short. Works for cubins as well. */
char *fatbin_text(const struct fatbin_entry *entry, size_t *bytes, char *why, size_t why_bytes);

/* Calls visit for every PTX text reachable from an image of any kind (text, container, wrapper); stops early
 * when visit returns false. `text` is NUL-terminated and lives for the call only. Returns the number visited. */
size_t image_each_ptx(const void *image, size_t known_bytes,
                      bool (*visit)(void *self, const char *text, size_t bytes, uint32_t target), void *self);
