/* links: shim/fatbin.c */
#include "shim/fatbin.h"
#include "tests/unit/fatbin_samples.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include <cmocka.h>

/* Builds containers entry by entry. */
struct builder {
    unsigned char bytes[65536];
    size_t count;
};

static void put(struct builder *builder, size_t at, uint64_t value, size_t bytes)
{
    memcpy(builder->bytes + at, &value, bytes);
}

static void begin(struct builder *builder)
{
    memset(builder, 0, sizeof *builder);
    put(builder, 0, 0xba55ed50u, 4);
    put(builder, 4, 1, 2);
    put(builder, 6, 16, 2);
    builder->count = 16;
}

static void add(struct builder *builder, unsigned kind, unsigned target, uint64_t flags, const void *payload,
                size_t stored, size_t plain)
{
    size_t at = builder->count, padded = (stored + 7) & ~(size_t)7;
    bool is_compressed = flags & (FATBIN_FLAG_LZ4 | FATBIN_FLAG_ZSTD);
    put(builder, at, kind, 2);
    put(builder, at + 2, 0x101, 2);
    put(builder, at + 4, 64, 4);
    put(builder, at + 8, padded, 8);
    put(builder, at + 16, is_compressed ? stored : 0, 4);
    put(builder, at + 24, 0, 2);
    put(builder, at + 26, 9, 2);
    put(builder, at + 28, target, 4);
    put(builder, at + 40, flags, 8);
    put(builder, at + 56, is_compressed ? plain : 0, 8);
    memcpy(builder->bytes + at + 64, payload, stored);
    builder->count = at + 64 + padded;
    put(builder, 8, builder->count - 16, 8);
}

static const char text[] = ".version 9.0\n.target sm_75\n.address_size 64\n.visible .entry k() { ret; }\n";

static char *read_first(const void *image, size_t known, size_t *bytes, char *why)
{
    struct fatbin fatbin;
    struct fatbin_entry entry;
    why[0] = '\0';
    assert_true(fatbin_open(image, known, &fatbin));
    assert_true(fatbin_next(&fatbin, &entry));
    return fatbin_text(&entry, bytes, why, 200);
}

static void expect_sample(const unsigned char *sample, size_t size, uint64_t flag)
{
    struct fatbin fatbin;
    struct fatbin_entry entry;
    assert_true(fatbin_open(sample, SIZE_MAX, &fatbin));
    for (unsigned i = 0; i < 2; i++) {
        char why[200] = "", target[32];
        size_t bytes;
        assert_true(fatbin_next(&fatbin, &entry));
        assert_int_equal(entry.kind, FATBIN_PTX);
        assert_int_equal(entry.target, i ? 90 : 75);
        assert_int_equal(entry.major, 9);
        assert_int_equal(entry.minor, 0);
        assert_true(entry.flags & flag);
        char *ptx = fatbin_text(&entry, &bytes, why, sizeof why);
        assert_non_null(ptx);
        assert_string_equal(why, "");
        assert_int_equal(strlen(ptx), bytes);
        snprintf(target, sizeof target, ".target sm_%u", entry.target);
        assert_non_null(strstr(ptx, target));
        assert_non_null(strstr(ptx, ".visible .entry twice("));
        assert_non_null(strstr(ptx, "ret;"));
        assert_non_null(memchr(ptx + bytes - 4, '}', 4));
        free(ptx);
    }
    assert_false(fatbin_next(&fatbin, &entry));
    assert_false(fatbin.is_broken);
    assert_ptr_equal(fatbin.next, sample + size);
}

static void test_what_nvcc_writes(void **state)
{
    (void)state;
    expect_sample(sample_speed, sizeof sample_speed, FATBIN_FLAG_LZ4);
    expect_sample(sample_size, sizeof sample_size, FATBIN_FLAG_ZSTD);
}

static void test_plain_and_compressed_agree(void **state)
{
    (void)state;
    static struct builder plain, packed;
    char compressed[512], why[200];
    size_t stored = ZSTD_compress(compressed, sizeof compressed, text, sizeof text, 19), bytes;
    assert_false(ZSTD_isError(stored));
    begin(&plain);
    add(&plain, FATBIN_PTX, 75, 0x11, text, sizeof text, 0);
    begin(&packed);
    add(&packed, FATBIN_PTX, 75, FATBIN_FLAG_ZSTD | 0x11, compressed, stored, sizeof text);
    char *first = read_first(plain.bytes, plain.count, &bytes, why);
    assert_non_null(first);
    assert_int_equal(bytes, strlen(text));
    char *second = read_first(packed.bytes, SIZE_MAX, &bytes, why);
    assert_non_null(second);
    assert_int_equal(bytes, strlen(text));
    assert_string_equal(first, second);
    free(first);
    free(second);
}

static void test_wrapper(void **state)
{
    (void)state;
    struct {
        uint32_t magic, version;
        const void *container;
        void *unused;
    } wrapper = {0x466243b1u, 1, sample_size, NULL};
    size_t bytes;
    char why[200];
    assert_int_equal(image_kind(&wrapper, SIZE_MAX), IMAGE_WRAPPER);
    char *ptx = read_first(&wrapper, SIZE_MAX, &bytes, why);
    assert_non_null(ptx);
    free(ptx);
    struct fatbin fatbin;
    wrapper.container = NULL;
    assert_false(fatbin_open(&wrapper, SIZE_MAX, &fatbin));
    wrapper.container = &wrapper; /* a wrapper in a wrapper is none */
    assert_false(fatbin_open(&wrapper, SIZE_MAX, &fatbin));
}

static void test_kinds_of_image(void **state)
{
    (void)state;
    struct fatbin fatbin;
    assert_int_equal(image_kind(text, SIZE_MAX), IMAGE_TEXT);
    assert_int_equal(image_kind("\n", 2), IMAGE_TEXT);
    assert_int_equal(image_kind("P", 1), IMAGE_TEXT);
    assert_int_equal(image_kind("\177ELF", 4), IMAGE_ELF);
    assert_int_equal(image_kind("\177EL", 3), IMAGE_UNKNOWN);
    assert_int_equal(image_kind("", 1), IMAGE_UNKNOWN);
    assert_int_equal(image_kind(NULL, SIZE_MAX), IMAGE_UNKNOWN);
    assert_int_equal(image_kind(text, 0), IMAGE_UNKNOWN);
    assert_int_equal(image_kind(sample_size, 4), IMAGE_FATBIN);
    assert_false(fatbin_open(text, sizeof text, &fatbin));
    assert_false(fatbin_open(sample_size, 15, &fatbin));
}

static void expect_fault(const struct builder *builder, const char *fault)
{
    size_t bytes;
    char why[200];
    char *ptx = read_first(builder->bytes, builder->count, &bytes, why);
    assert_null(ptx);
    assert_non_null(strstr(why, fault));
    assert_null(strchr(why, '\n'));
}

static void test_sizes_that_lie(void **state)
{
    (void)state;
    static struct builder builder;
    struct fatbin fatbin;
    struct fatbin_entry entry;
    static const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - 63, (uint64_t)1 << 63, 65536, 1000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        begin(&builder);
        add(&builder, FATBIN_PTX, 75, 0, text, sizeof text, 0);
        put(&builder, 24, sizes[i], 8); /* payload */
        assert_true(fatbin_open(builder.bytes, builder.count, &fatbin));
        assert_false(fatbin_next(&fatbin, &entry));
        assert_true(fatbin.is_broken);
        assert_false(fatbin_next(&fatbin, &entry));
        put(&builder, 8, sizes[i], 8); /* container */
        assert_true(fatbin_open(builder.bytes, builder.count, &fatbin));
        assert_true(fatbin.is_broken);
    }
    begin(&builder);
    put(&builder, 8, UINT64_MAX, 8);
    assert_false(fatbin_open(builder.bytes, SIZE_MAX, &fatbin));
    begin(&builder);
    add(&builder, FATBIN_PTX, 75, FATBIN_FLAG_ZSTD, text, sizeof text, (uint64_t)1 << 60);
    expect_fault(&builder, "declares");
    begin(&builder);
    add(&builder, FATBIN_PTX, 75, FATBIN_FLAG_ZSTD, text, sizeof text, 1000);
    expect_fault(&builder, "sm_75");
    put(&builder, 32, 100000, 4); /* more compressed bytes than stored ones */
    assert_true(fatbin_open(builder.bytes, builder.count, &fatbin));
    assert_false(fatbin_next(&fatbin, &entry));
}

static bool lz4(const char *block, size_t bytes, size_t plain, const char *expected)
{
    static struct builder builder;
    size_t done;
    char why[200];
    begin(&builder);
    add(&builder, FATBIN_PTX, 75, FATBIN_FLAG_LZ4, block, bytes, plain);
    char *out = read_first(builder.bytes, builder.count, &done, why);
    if (!out) {
        assert_non_null(strstr(why, "LZ4"));
        return false;
    }
    assert_int_equal(done, plain);
    assert_string_equal(out, expected);
    free(out);
    return true;
}

static void test_lz4_blocks(void **state)
{
    (void)state;
    assert_true(lz4("\x30"
                    "abc",
                    4, 3, "abc"));
    assert_true(lz4("\x10"
                    "a\x01\x00\x10"
                    "b",
                    6, 6, "aaaaab")); /* overlapping match */
    assert_true(lz4("\x2f"
                    "ab\x02\x00\x02\x10"
                    "c",
                    8, 24, "abababababababababababac"));
    assert_false(lz4("\x10"
                     "a\x00\x00\x10"
                     "b",
                     6, 6, "")); /* distance 0 */
    assert_false(lz4("\x10"
                     "a\x02\x00\x10"
                     "b",
                     6, 6, "")); /* before the beginning */
    assert_false(lz4("\x10"
                     "a\x01\x00\x10"
                     "b",
                     6, 5, "")); /* longer than declared */
    assert_false(lz4("\x10"
                     "a\x01\x00\x10"
                     "b",
                     6, 7, ""));                   /* shorter than declared */
    assert_false(lz4("\xf0\xff\xff", 3, 600, "")); /* length breaks off */
    assert_false(lz4("\x50"
                     "abc",
                     4, 5, "")); /* literals break off */
    assert_false(lz4("\x10"
                     "a\x01",
                     3, 6, "")); /* distance breaks off */
}

static size_t read_all(const unsigned char *image, size_t known)
{
    struct fatbin fatbin;
    struct fatbin_entry entry;
    size_t texts = 0;
    if (!fatbin_open(image, known, &fatbin))
        return 0;
    while (fatbin_next(&fatbin, &entry)) {
        char why[200];
        size_t bytes;
        char *ptx = fatbin_text(&entry, &bytes, why, sizeof why);
        texts += ptx != NULL;
        free(ptx);
    }
    return texts;
}

static void test_truncated(void **state)
{
    (void)state;
    const unsigned char *const samples[] = {sample_speed, sample_size};
    const size_t sizes[] = {sizeof sample_speed, sizeof sample_size};
    for (int s = 0; s < 2; s++) {
        for (size_t length = 0; length < sizes[s]; length++) {
            unsigned char *copy = malloc(length ? length : 1); /* exact: the sanitizer sees one byte too many */
            memcpy(copy, samples[s], length);
            assert_true(read_all(copy, length) < 2);
            free(copy);
        }
    }
}

static void test_mutated(void **state)
{
    (void)state;
    const unsigned char *const samples[] = {sample_speed, sample_size};
    const size_t sizes[] = {sizeof sample_speed, sizeof sample_size};
    uint64_t random = 7;
    size_t broken = 0;
    for (int round = 0; round < 20000; round++) {
        size_t size = sizes[round % 2];
        unsigned char *copy = malloc(size);
        memcpy(copy, samples[round % 2], size);
        for (int flips = 0; flips < 1 + round % 4; flips++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            size_t at = (random >> 20) % (round % 3 ? 96 : size); /* mostly the headers */
            copy[at] = (unsigned char)(random >> 50);
        }
        broken += read_all(copy, size) < 2;
        free(copy);
    }
    assert_true(broken > 1000);
}

struct visits {
    size_t count, most;
    uint32_t targets[4];
};

static bool visit(void *self, const char *ptx, size_t bytes, uint32_t target)
{
    struct visits *visits = self;
    assert_int_equal(strlen(ptx), bytes);
    visits->targets[visits->count++] = target;
    return visits->count < visits->most;
}

static void test_each_ptx(void **state)
{
    (void)state;
    static struct builder builder;
    struct visits visits = {.most = 4};
    begin(&builder);
    add(&builder, FATBIN_CUBIN, 75, 0, "\177ELF....", 8, 0);
    add(&builder, FATBIN_PTX, 75, 0, text, sizeof text, 0);
    add(&builder, FATBIN_PTX, 80, FATBIN_FLAG_ZSTD, text, sizeof text, sizeof text); /* broken: passed over */
    add(&builder, 99, 75, 0, text, sizeof text, 0);
    add(&builder, FATBIN_PTX, 90, 0, text, sizeof text, 0);
    assert_int_equal(image_each_ptx(builder.bytes, builder.count, visit, &visits), 2);
    assert_int_equal(visits.targets[0], 75);
    assert_int_equal(visits.targets[1], 90);
    visits = (struct visits){.most = 1};
    assert_int_equal(image_each_ptx(builder.bytes, SIZE_MAX, visit, &visits), 1);
    visits = (struct visits){.most = 4};
    assert_int_equal(image_each_ptx(text, SIZE_MAX, visit, &visits), 1);
    char *unended = malloc(20); /* text with a size needs no NUL */
    memcpy(unended, text, 20);
    assert_int_equal(image_each_ptx(unended, 20, visit, &visits), 1);
    free(unended);
    assert_int_equal(image_each_ptx("\177ELF", 4, visit, &visits), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_nvcc_writes), cmocka_unit_test(test_plain_and_compressed_agree),
        cmocka_unit_test(test_wrapper),          cmocka_unit_test(test_kinds_of_image),
        cmocka_unit_test(test_sizes_that_lie),   cmocka_unit_test(test_lz4_blocks),
        cmocka_unit_test(test_truncated),        cmocka_unit_test(test_mutated),
        cmocka_unit_test(test_each_ptx),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
