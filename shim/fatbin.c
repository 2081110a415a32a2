#include "shim/fatbin.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define WRAPPER_MAGIC          0x466243b1u
#define CONTAINER_MAGIC        0xba55ed50u
#define CONTAINER_HEADER_BYTES 16u
#define ENTRY_HEADER_BYTES     64u
#define MOST_PLAIN_BYTES       ((uint64_t)1 << 30) /* far above any module; bounds what a broken size can ask for */

static uint16_t read_u16(const unsigned char *at)
{
    uint16_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static uint32_t read_u32(const unsigned char *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static uint64_t read_u64(const unsigned char *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static bool is_text_start(unsigned char c)
{
    return (c >= 0x20 && c < 0x7f) || c == '\n' || c == '\r' || c == '\t';
}

enum image_kind image_kind(const void *image, size_t known_bytes)
{
    const unsigned char *bytes = image;
    if (!image || known_bytes == 0)
        return IMAGE_UNKNOWN;
    /* Text may be shorter than a magic number: its first byte decides before more is read. */
    if (bytes[0] != 0x50 && bytes[0] != 0xb1 && bytes[0] != 0x7f)
        return is_text_start(bytes[0]) ? IMAGE_TEXT : IMAGE_UNKNOWN;
    if (bytes[0] == 0x50 && (known_bytes < 2 || bytes[1] != 0xed))
        return IMAGE_TEXT;
    if (known_bytes < 4)
        return IMAGE_UNKNOWN;
    uint32_t magic = read_u32(bytes);
    if (magic == CONTAINER_MAGIC)
        return IMAGE_FATBIN;
    if (magic == WRAPPER_MAGIC)
        return IMAGE_WRAPPER;
    return memcmp(bytes, "\177ELF", 4) == 0 ? IMAGE_ELF : IMAGE_UNKNOWN;
}

static bool open_container(const unsigned char *image, size_t known_bytes, struct fatbin *out)
{
    if (known_bytes < CONTAINER_HEADER_BYTES || read_u32(image) != CONTAINER_MAGIC || read_u16(image + 4) != 1)
        return false;
    size_t header_bytes = read_u16(image + 6);
    uint64_t body_bytes = read_u64(image + 8);
    if (header_bytes < CONTAINER_HEADER_BYTES || header_bytes > known_bytes)
        return false;
    *out = (struct fatbin){.next = image + header_bytes};
    size_t available = known_bytes - header_bytes;
    if (known_bytes == SIZE_MAX) /* the pointer must not wrap around either */
        available = (size_t)(UINTPTR_MAX - (uintptr_t)out->next);
    if (body_bytes > available) {
        if (known_bytes == SIZE_MAX)
            return false;
        out->is_broken = true;
        body_bytes = available;
    }
    out->end = out->next + body_bytes;
    return true;
}

bool fatbin_open(const void *image, size_t known_bytes, struct fatbin *out)
{
    enum image_kind kind = image_kind(image, known_bytes);
    if (kind == IMAGE_FATBIN)
        return open_container(image, known_bytes, out);
    if (kind != IMAGE_WRAPPER || known_bytes < 8 + sizeof(void *))
        return false;
    const unsigned char *inner;
    memcpy(&inner, (const unsigned char *)image + 8, sizeof inner);
    /* The wrapper's pointer leads out of the range that `known_bytes` bounds. */
    return image_kind(inner, SIZE_MAX) == IMAGE_FATBIN && open_container(inner, SIZE_MAX, out);
}

static bool stop_broken(struct fatbin *fatbin)
{
    fatbin->is_broken = true;
    fatbin->next = fatbin->end;
    return false;
}

bool fatbin_next(struct fatbin *fatbin, struct fatbin_entry *out)
{
    const unsigned char *at = fatbin->next;
    size_t left = (size_t)(fatbin->end - at);
    if (left == 0)
        return false;
    if (left < ENTRY_HEADER_BYTES)
        return stop_broken(fatbin);
    uint32_t header_bytes = read_u32(at + 4);
    uint64_t payload_bytes = read_u64(at + 8);
    if (header_bytes < ENTRY_HEADER_BYTES || header_bytes > left || payload_bytes > left - header_bytes)
        return stop_broken(fatbin);
    uint32_t compressed_bytes = read_u32(at + 16);
    if (compressed_bytes > payload_bytes)
        return stop_broken(fatbin);
    bool is_compressed = compressed_bytes != 0;
    *out = (struct fatbin_entry){
        .kind = read_u16(at),
        .target = read_u32(at + 28),
        .major = read_u16(at + 26),
        .minor = read_u16(at + 24),
        .flags = read_u64(at + 40),
        .payload = at + header_bytes,
        .payload_bytes = is_compressed ? compressed_bytes : (size_t)payload_bytes,
        .plain_bytes = (size_t)(is_compressed ? read_u64(at + 56) : payload_bytes),
    };
    fatbin->next = at + header_bytes + payload_bytes;
    return true;
}

/* One length of an LZ4 sequence: the token's four bits, prolonged by bytes of 255. */
static bool lz4_read_length(const unsigned char **from, const unsigned char *end, size_t *length)
{
    if (*length != 15)
        return true;
    unsigned char more;
    do {
        if (*from == end)
            return false;
        more = *(*from)++;
        *length += more;
    } while (more == 255);
    return true;
}

/* LZ4 block format: sequences of token, literals, u16 distance back, match; the last ends with its literals. */
static bool lz4_decode(const unsigned char *from, size_t from_bytes, char *to, size_t to_bytes)
{
    const unsigned char *from_end = from + from_bytes;
    size_t done = 0;
    while (from < from_end) {
        unsigned token = *from++;
        size_t literals = token >> 4;
        if (!lz4_read_length(&from, from_end, &literals) || literals > (size_t)(from_end - from) ||
            literals > to_bytes - done)
            return false;
        memcpy(to + done, from, literals);
        done += literals;
        from += literals;
        if (from == from_end)
            break;
        if (from_end - from < 2)
            return false;
        size_t distance = read_u16(from);
        from += 2;
        size_t match = token & 15;
        if (!lz4_read_length(&from, from_end, &match))
            return false;
        match += 4;
        if (distance == 0 || distance > done || match > to_bytes - done)
            return false;
        for (size_t i = 0; i < match; i++) /* may overlap itself on purpose: bytewise */
            to[done + i] = to[done + i - distance];
        done += match;
    }
    return done == to_bytes;
}

static bool decompress(const struct fatbin_entry *entry, char *to, const char **fault)
{
    if (entry->flags & FATBIN_FLAG_ZSTD) {
        size_t done = ZSTD_decompress(to, entry->plain_bytes, entry->payload, entry->payload_bytes);
        *fault = ZSTD_isError(done) ? ZSTD_getErrorName(done) : "shorter than declared";
        return done == entry->plain_bytes;
    }
    if (entry->flags & FATBIN_FLAG_LZ4) {
        *fault = "broken LZ4 block";
        return lz4_decode(entry->payload, entry->payload_bytes, to, entry->plain_bytes);
    }
    *fault = "payload shorter than declared";
    if (entry->payload_bytes != entry->plain_bytes)
        return false;
    memcpy(to, entry->payload, entry->plain_bytes);
    return true;
}

char *fatbin_text(const struct fatbin_entry *entry, size_t *bytes, char *why, size_t why_bytes)
{
    *bytes = 0;
    if (entry->plain_bytes > MOST_PLAIN_BYTES) {
        snprintf(why, why_bytes, "fatbin: entry for sm_%u declares %zu bytes", entry->target, entry->plain_bytes);
        return NULL;
    }
    char *text = malloc(entry->plain_bytes + 1);
    if (!text) {
        snprintf(why, why_bytes, "fatbin: no memory for %zu bytes", entry->plain_bytes);
        return NULL;
    }
    const char *fault;
    if (!decompress(entry, text, &fault)) {
        snprintf(why, why_bytes, "fatbin: entry for sm_%u: %s", entry->target, fault);
        free(text);
        return NULL;
    }
    size_t length = entry->plain_bytes;
    while (entry->kind == FATBIN_PTX && length > 0 && text[length - 1] == '\0')
        length--;
    text[length] = '\0';
    *bytes = length;
    return text;
}

static size_t visit_text(const char *text, size_t known_bytes,
                         bool (*visit)(void *self, const char *text, size_t bytes, uint32_t target), void *self)
{
    if (known_bytes == SIZE_MAX) {
        visit(self, text, strlen(text), 0);
        return 1;
    }
    /* Given with a size, text need not end with a NUL. */
    size_t length = strnlen(text, known_bytes);
    char *copy = malloc(length + 1);
    if (!copy)
        return 0;
    memcpy(copy, text, length);
    copy[length] = '\0';
    visit(self, copy, length, 0);
    free(copy);
    return 1;
}

size_t image_each_ptx(const void *image, size_t known_bytes,
                      bool (*visit)(void *self, const char *text, size_t bytes, uint32_t target), void *self)
{
    struct fatbin fatbin;
    struct fatbin_entry entry;
    size_t visited = 0;
    if (image_kind(image, known_bytes) == IMAGE_TEXT)
        return visit_text(image, known_bytes, visit, self);
    if (!fatbin_open(image, known_bytes, &fatbin))
        return 0;
    while (fatbin_next(&fatbin, &entry)) {
        if (entry.kind != FATBIN_PTX)
            continue;
        char why[160];
        size_t bytes;
        char *text = fatbin_text(&entry, &bytes, why, sizeof why);
        if (!text)
            continue;
        bool wants_more = visit(self, text, bytes, entry.target);
        free(text);
        visited++;
        if (!wants_more)
            break;
    }
    return visited;
}
