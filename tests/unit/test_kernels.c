/* links: */
/* Our device kernels (shim/kernels.cu) against plain C. The device part runs on the CPU device in $BUILD/device (BUILD:
 * build if unset); without it only the arithmetic that host and device share is tested, and the rest is skipped aloud.
 */
#define __CUDA_API_VERSION_INTERNAL
#include "shim/kernels.h"
#include <cuda.h>
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* clang-format off */
#define DRIVER_FUNCTIONS(F) \
    F(cuInit) F(cuDeviceGet) F(cuDevicePrimaryCtxRetain) F(cuCtxSetCurrent) F(cuModuleLoadData) \
    F(cuModuleGetFunction) F(cuMemAlloc_v2) F(cuMemFree_v2) F(cuMemcpyHtoD_v2) F(cuMemcpyDtoH_v2) \
    F(cuMemsetD8_v2) F(cuMemHostAlloc) F(cuMemFreeHost) F(cuLaunchKernel) F(cuCtxSynchronize)
/* clang-format on */

static struct {
    bool is_there;
#define F(name) __typeof__(name) *name;
    DRIVER_FUNCTIONS(F)
#undef F
    CUfunction kernels[KERNELS_COUNT];
} device;

#define RUN(call) assert_int_equal(device.call, CUDA_SUCCESS)

/* Plain C */

struct sum {
    uint64_t halves[2];
};

static struct sum reference_fingerprint(const unsigned char *data, size_t bytes)
{
    struct sum sum = {{0, 0}};
    for (size_t at = 0, i = 0; at < bytes; at += 8, i++) {
        uint64_t word = 0;
        memcpy(&word, data + at, bytes - at < 8 ? bytes - at : 8);
        kernels_absorb(word, (uint32_t)i, &sum.halves[0], &sum.halves[1]);
    }
    return sum;
}

static bool same_sum(struct sum a, struct sum b)
{
    return a.halves[0] == b.halves[0] && a.halves[1] == b.halves[1];
}

static uint64_t next_random(uint64_t *random)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return *random >> 24;
}

static void fill_random(unsigned char *data, size_t bytes, uint64_t seed)
{
    for (size_t i = 0; i < bytes; i++)
        data[i] = (unsigned char)next_random(&seed);
}

static void expect_different(unsigned char *data, size_t bytes, struct sum before)
{
    struct sum after = reference_fingerprint(data, bytes);
    assert_int_not_equal(after.halves[0], before.halves[0]);
    assert_int_not_equal(after.halves[1], before.halves[1]);
}

static void test_every_byte_shows(void **state)
{
    (void)state;
    unsigned char data[203];
    fill_random(data, sizeof data, 5);
    struct sum before = reference_fingerprint(data, sizeof data);
    for (size_t i = 0; i < sizeof data; i++) {
        for (int bit = 0; bit < 8; bit++) {
            data[i] ^= (unsigned char)(1 << bit);
            struct sum after = reference_fingerprint(data, sizeof data);
            assert_false(same_sum(before, after));
            data[i] ^= (unsigned char)(1 << bit);
        }
    }
    assert_true(same_sum(before, reference_fingerprint(data, sizeof data)));
}

static void swap_words(unsigned char *data, size_t a, size_t b)
{
    unsigned char keep[8];
    memcpy(keep, data + 8 * a, 8);
    memcpy(data + 8 * a, data + 8 * b, 8);
    memcpy(data + 8 * b, keep, 8);
}

/* Permutations, shifted runs, and patterns in which a linear key would cancel. */
static void test_positions_show(void **state)
{
    (void)state;
    unsigned char data[8 * 64];
    fill_random(data, sizeof data, 9);
    struct sum before = reference_fingerprint(data, sizeof data);
    for (size_t a = 0; a < 64; a++) {
        for (size_t b = a + 1; b < 64; b++) {
            swap_words(data, a, b);
            expect_different(data, sizeof data, before);
            swap_words(data, a, b);
        }
    }
    uint64_t symmetric[8] = {0, 1, 2, 0, 0, 2, 1, 0}, other[8] = {0, 2, 1, 0, 0, 1, 2, 0};
    expect_different((unsigned char *)other, sizeof other,
                     reference_fingerprint((unsigned char *)symmetric, sizeof symmetric));
    uint64_t early[16] = {[2] = 7, [3] = 7}, late[16] = {[10] = 7, [11] = 7};
    expect_different((unsigned char *)late, sizeof late, reference_fingerprint((unsigned char *)early, sizeof early));
    float ones[32], twos[32];
    for (int i = 0; i < 32; i++) {
        ones[i] = 1;
        twos[i] = i % 2 ? 0 : 2;
    }
    expect_different((unsigned char *)twos, sizeof twos, reference_fingerprint((unsigned char *)ones, sizeof ones));
}

/* Low-entropy buffers, as activations after ReLU are: no two of many equal each other in either half. */
static int compare_words(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

static void test_sparse_buffers_do_not_collide(void **state)
{
    (void)state;
    enum { COUNT = 32 * 31 / 2 * 4 };
    static uint64_t halves[2][COUNT];
    float data[32];
    size_t count = 0;
    for (int a = 0; a < 32; a++) {
        for (int b = a + 1; b < 32; b++) {
            for (int value = 1; value <= 4; value++) {
                memset(data, 0, sizeof data);
                data[a] = (float)value;
                data[b] = 1;
                struct sum sum = reference_fingerprint((unsigned char *)data, sizeof data);
                halves[0][count] = sum.halves[0];
                halves[1][count++] = sum.halves[1];
            }
        }
    }
    for (int half = 0; half < 2; half++) {
        qsort(halves[half], count, sizeof **halves, compare_words);
        for (size_t i = 1; i < count; i++)
            assert_int_not_equal(halves[half][i], halves[half][i - 1]);
    }
}

static void test_shapes_cover(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {0, 1, 7, 8, 4096, 8191, 8192, 8193, 131072, 131080, 1000003, (uint64_t)1 << 38};
    static const uint32_t processors[] = {1, 2, 8, 9, 132};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        for (size_t p = 0; p < sizeof processors / sizeof *processors; p++) {
            struct kernels_shape shape = kernels_shape(sizes[s], processors[p]);
            assert_true(shape.grid >= 1 && shape.block >= 1 && shape.block <= 1024);
            assert_int_equal(shape.is_strided, processors[p] > KERNELS_FEW_PROCESSORS);
            if (!shape.is_strided)
                assert_true((uint64_t)shape.grid * shape.block * shape.run_words >= sizes[s] / 8);
        }
    }
    for (uint64_t count = 0; count < 1000; count++) {
        struct kernels_shape shape = kernels_pair_shape(count);
        assert_true((uint64_t)shape.grid * shape.block >= count && shape.grid >= 1);
    }
}

/* On the device */

static bool load_device(void)
{
    const char *build = getenv("BUILD") ? getenv("BUILD") : "build";
    char path[4096];
    snprintf(path, sizeof path, "%s/device/libcuda.so.1", build);
    char *whole = realpath(path, NULL);
    void *library = whole ? dlopen(whole, RTLD_NOW | RTLD_LOCAL) : NULL;
    free(whole);
    if (!library)
        return false;
#define F(name)                                                                                                        \
    device.name = (__typeof__(device.name))dlsym(library, #name);                                                      \
    assert_non_null(device.name);
    DRIVER_FUNCTIONS(F)
#undef F
    return true;
}

static char *read_ptx(void)
{
    const char *build = getenv("BUILD") ? getenv("BUILD") : "build";
    char path[4096];
    snprintf(path, sizeof path, "%s/gen/kernels.ptx", build);
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    char *text = calloc(1, 1 << 20);
    size_t bytes = fread(text, 1, (1 << 20) - 1, file);
    fclose(file);
    assert_true(bytes > 0);
    return text;
}

static int open_device(void **state)
{
    (void)state;
    static const char *const names[KERNELS_COUNT] = {
#define K(name) [KERNELS_##name] = KERNELS_SYMBOL_PREFIX #name,
        KERNELS_LIST(K)
#undef K
    };
    CUdevice number;
    CUcontext context;
    CUmodule module;
    char *text = read_ptx();
    if (!text || !load_device()) {
        print_message("no CPU device or no kernels.ptx in the build folder: the device tests are skipped\n");
        free(text);
        return 0;
    }
    RUN(cuInit(0));
    RUN(cuDeviceGet(&number, 0));
    RUN(cuDevicePrimaryCtxRetain(&context, number));
    RUN(cuCtxSetCurrent(context));
    RUN(cuModuleLoadData(&module, text));
    for (int i = 0; i < KERNELS_COUNT; i++)
        RUN(cuModuleGetFunction(&device.kernels[i], module, names[i]));
    free(text);
    device.is_there = true;
    return 0;
}

static CUdeviceptr put(const void *data, size_t bytes)
{
    CUdeviceptr address;
    RUN(cuMemAlloc_v2(&address, bytes + 64));
    if (data)
        RUN(cuMemcpyHtoD_v2(address, data, bytes));
    else
        RUN(cuMemsetD8_v2(address, 0, bytes));
    return address;
}

static void get(void *data, CUdeviceptr address, size_t bytes)
{
    RUN(cuCtxSynchronize());
    RUN(cuMemcpyDtoH_v2(data, address, bytes));
}

static void launch(int kernel, struct kernels_shape shape, void *arguments)
{
    void *params[] = {arguments};
    RUN(cuLaunchKernel(device.kernels[kernel], shape.grid, 1, 1, shape.block, 1, 1, 0, NULL, params, NULL));
}

/* Few processors: the form in runs; many: the strided one. */
static const uint32_t forms[] = {2, 132};

static const size_t sizes[] = {0, 1, 7, 8, 9, 63, 4096, 8192, 8200, 65536, 131072, 200003, 1 << 20};
#define SIZE_COUNT (sizeof sizes / sizeof *sizes)
#define MOST_BYTES ((1 << 20) + 64)

static void test_fingerprint_on_device(void **state)
{
    (void)state;
    if (!device.is_there)
        skip();
    static unsigned char data[MOST_BYTES];
    fill_random(data, sizeof data, 77);
    CUdeviceptr buffer = put(data, sizeof data), slot = put(NULL, 16);
    for (size_t i = 0; i < SIZE_COUNT; i++) {
        for (int form = 0; form < 2; form++) {
            for (size_t offset = 0; offset < 16; offset += offset < 2 ? 1 : 6) {
                struct kernels_shape shape = kernels_shape(sizes[i], forms[form]);
                struct kernels_fingerprint arguments = {buffer + offset, sizes[i], slot, shape.run_words};
                struct sum sum, expected = reference_fingerprint(data + offset, sizes[i]);
                RUN(cuMemsetD8_v2(slot, 0, 16));
                launch(shape.is_strided ? KERNELS_fingerprint_strided : KERNELS_fingerprint_runs, shape, &arguments);
                launch(shape.is_strided ? KERNELS_fingerprint_strided : KERNELS_fingerprint_runs, shape, &arguments);
                get(&sum, slot, sizeof sum);
                assert_int_equal(sum.halves[0], 2 * expected.halves[0]);
                assert_int_equal(sum.halves[1], 2 * expected.halves[1]);
            }
        }
    }
    RUN(cuMemFree_v2(buffer));
    RUN(cuMemFree_v2(slot));
}

static uint64_t reference_different(const unsigned char *left, const unsigned char *right, size_t bytes)
{
    uint64_t different = 0;
    for (size_t at = 0; at < bytes; at += 8)
        different += memcmp(left + at, right + at, bytes - at < 8 ? bytes - at : 8) != 0;
    return different;
}

static void test_compare_bytes_on_device(void **state)
{
    (void)state;
    if (!device.is_there)
        skip();
    static unsigned char left[MOST_BYTES];
    unsigned char *right;
    uint64_t random = 3, different;
    RUN(cuMemHostAlloc((void **)&right, sizeof left, 0));
    fill_random(left, sizeof left, 78);
    CUdeviceptr buffer = put(left, sizeof left), result = put(NULL, 8);
    for (size_t i = 0; i < SIZE_COUNT; i++) {
        for (int form = 0; form < 4; form++) {
            size_t offset = form & 2 ? 3 : 0;
            memcpy(right, left, sizeof left);
            for (int flips = 0; flips < form * 5; flips++)
                right[next_random(&random) % (sizes[i] + 16)] ^= 1;
            struct kernels_shape shape = kernels_shape(sizes[i], forms[form & 1]);
            struct kernels_compare_bytes arguments = {buffer + offset, (uint64_t)(uintptr_t)right + offset, sizes[i],
                                                      result, shape.run_words};
            RUN(cuMemsetD8_v2(result, 0, 8));
            launch(shape.is_strided ? KERNELS_compare_bytes_strided : KERNELS_compare_bytes_runs, shape, &arguments);
            get(&different, result, 8);
            assert_int_equal(different, reference_different(left + offset, right + offset, sizes[i]));
        }
    }
    RUN(cuMemFree_v2(buffer));
    RUN(cuMemFree_v2(result));
    RUN(cuMemFreeHost(right));
}

static void test_scan_pointers_on_device(void **state)
{
    (void)state;
    if (!device.is_there)
        skip();
    enum { WORDS = 20000, CAPACITY = 64 };
    static uint64_t data[WORDS], list[CAPACITY], expected[CAPACITY];
    const uint64_t low = 0x7000000000, high = 0x7000100000;
    for (int form = 0; form < 2; form++) {
        for (size_t planted = 0; planted <= 96; planted += 24) { /* 96: more than fit */
            uint64_t random = planted + 1, found;
            for (size_t i = 0; i < WORDS; i++)
                data[i] = next_random(&random) % 2 ? low - 1 : high;
            for (size_t i = 0; i < planted; i++) {
                data[i * 200 + 7] = low + i * 8;
                if (i < CAPACITY)
                    expected[i] = low + i * 8;
            }
            CUdeviceptr buffer = put(data, sizeof data), results = put(NULL, sizeof list + 8);
            struct kernels_shape shape = kernels_shape(sizeof data, forms[form]);
            struct kernels_scan_pointers arguments = {buffer,      sizeof data, low,     high,
                                                      results + 8, CAPACITY,    results, shape.run_words};
            launch(shape.is_strided ? KERNELS_scan_pointers_strided : KERNELS_scan_pointers_runs, shape, &arguments);
            get(&found, results, 8);
            get(list, results + 8, sizeof list);
            assert_int_equal(found, planted);
            size_t kept = planted < CAPACITY ? planted : CAPACITY;
            qsort(list, kept, sizeof *list, compare_words);
            if (planted <= CAPACITY)
                assert_memory_equal(list, expected, kept * sizeof *list);
            for (size_t i = 0; i < kept; i++)
                assert_true(list[i] >= low && list[i] < high);
            RUN(cuMemFree_v2(buffer));
            RUN(cuMemFree_v2(results));
        }
    }
}

static void test_fill_pattern_on_device(void **state)
{
    (void)state;
    if (!device.is_there)
        skip();
    static unsigned char data[MOST_BYTES];
    for (size_t i = 0; i < SIZE_COUNT; i++) {
        for (int form = 0; form < 4; form++) {
            size_t offset = form & 2 ? 5 : 0;
            CUdeviceptr buffer = put(NULL, sizes[i] + 32);
            struct kernels_shape shape = kernels_shape(sizes[i], forms[form & 1]);
            struct kernels_fill_pattern arguments = {buffer + offset, sizes[i], 42 + i, shape.run_words};
            launch(shape.is_strided ? KERNELS_fill_pattern_strided : KERNELS_fill_pattern_runs, shape, &arguments);
            get(data, buffer, sizes[i] + 32);
            for (size_t at = 0; at < sizes[i] + 32; at++) {
                bool is_inside = at >= offset && at < offset + sizes[i];
                uint64_t word = kernels_pattern((at - offset) / 8, 42 + i);
                unsigned char expected = (unsigned char)(is_inside ? word >> (at - offset) % 8 * 8 : 0);
                assert_int_equal(data[at], expected);
            }
            RUN(cuMemFree_v2(buffer));
        }
    }
}

/* What count_pattern counts, byte by byte. */
static void reference_count(const unsigned char *data, size_t bytes, uint64_t seed, uint64_t *count)
{
    for (size_t at = 0, run = 0; at < bytes; at++) {
        bool is_equal = data[at] == (unsigned char)(kernels_pattern(at / 8, seed) >> at % 8 * 8);
        run = (at % 4 == 0 ? 0 : run) + is_equal;
        count[0] += (at % 4 == 3 || at + 1 == bytes) && run == at % 4 + 1;
        count[1] += is_equal + (is_equal && at == 0 ? KERNELS_EDGE : 0);
        count[1] += is_equal && at + 1 == bytes ? KERNELS_EDGE : 0;
    }
}

static void test_count_pattern_on_device(void **state)
{
    (void)state;
    if (!device.is_there)
        skip();
    static unsigned char data[MOST_BYTES];
    uint64_t random = 11, expected[2], found[2];
    for (size_t i = 0; i < SIZE_COUNT; i++) {
        for (unsigned form = 0; form < 8; form++) { /* written: nothing, every 2nd byte, a half of the words, all */
            for (size_t at = 0; at < sizes[i]; at++) {
                bool is_written = form / 2 == 1 ? at % 2 : form / 2 == 2 ? at / 4 % 2 : form / 2 == 3;
                unsigned char word = (unsigned char)(kernels_pattern(at / 8, 42 + i) >> at % 8 * 8);
                data[at] = is_written ? (unsigned char)next_random(&random) : word;
            }
            memset(expected, 0, sizeof expected);
            reference_count(data, sizes[i], 42 + i, expected);
            CUdeviceptr buffer = put(data, sizes[i]), count = put(NULL, sizeof found);
            struct kernels_shape shape = kernels_shape(sizes[i], forms[form & 1]);
            struct kernels_count_pattern arguments = {buffer, sizes[i], 42 + i, count, shape.run_words};
            launch(shape.is_strided ? KERNELS_count_pattern_strided : KERNELS_count_pattern_runs, shape, &arguments);
            get(found, count, sizeof found);
            assert_memory_equal(found, expected, sizeof found);
            RUN(cuMemFree_v2(buffer));
            RUN(cuMemFree_v2(count));
        }
    }
}

static void test_compare_fingerprints_on_device(void **state)
{
    (void)state;
    if (!device.is_there)
        skip();
    enum { COUNT = 300 };
    static uint64_t expected[COUNT][2], actual[COUNT][2], after[COUNT][2];
    static uint32_t times[COUNT];
    struct kernels_report *report;
    RUN(cuMemHostAlloc((void **)&report, sizeof *report, 0));
    for (int wrong = -1; wrong < COUNT; wrong += 43) {
        uint64_t random = 5;
        for (int i = 0; i < COUNT; i++) {
            times[i] = (uint32_t)(next_random(&random) % 3);
            for (int half = 0; half < 2; half++) {
                expected[i][half] = next_random(&random) << 20;
                actual[i][half] = times[i] * expected[i][half];
            }
        }
        if (wrong >= 0)
            actual[wrong][wrong % 2] ^= (uint64_t)1 << 63;
        CUdeviceptr left = put(expected, sizeof expected), right = put(actual, sizeof actual),
                    counts = put(times, sizeof times);
        struct kernels_compare_fingerprints arguments = {.expected = left,
                                                         .actual = right,
                                                         .times = counts,
                                                         .count = COUNT,
                                                         .report = (uint64_t)(uintptr_t)report,
                                                         .first = 1000,
                                                         .is_reset = wrong > 100};
        *report = (struct kernels_report){0, 0};
        launch(KERNELS_compare_fingerprints, kernels_pair_shape(COUNT), &arguments);
        get(after, right, sizeof after);
        assert_int_equal(report->is_raised, wrong >= 0);
        if (wrong >= 0)
            assert_int_equal(report->index, 1000 + wrong);
        if (wrong > 100)
            memset(actual, 0, sizeof actual);
        assert_memory_equal(after, actual, sizeof actual);
        RUN(cuMemFree_v2(left));
        RUN(cuMemFree_v2(right));
        RUN(cuMemFree_v2(counts));
    }
    RUN(cuMemFreeHost(report));
}

static void test_repair_on_device(void **state)
{
    (void)state;
    if (!device.is_there)
        skip();
    static unsigned char wrong[40000], right[40000], after[40000];
    struct kernels_report *report;
    RUN(cuMemHostAlloc((void **)&report, sizeof *report, 0));
    static const uint64_t lengths[] = {1, 7, 8, 4096, 39999};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        for (int is_strided = 0; is_strided < 2; is_strided++) {
            for (uint64_t different = 0; different < 2; different++) {
                for (uint64_t j = 0; j < sizeof right; j++) {
                    right[j] = (unsigned char)(j * 7 + 1);
                    wrong[j] = (unsigned char)(j * 5 + 2);
                }
                CUdeviceptr data = put(wrong, sizeof wrong), copy = put(right, sizeof right),
                            count = put(&different, sizeof different);
                struct kernels_shape shape = kernels_shape(lengths[i], is_strided ? 64 : 1);
                struct kernels_repair arguments = {.data = data,
                                                   .copy = copy,
                                                   .bytes = lengths[i],
                                                   .different = count,
                                                   .report = (uint64_t)(uintptr_t)report,
                                                   .index = 77,
                                                   .run_words = shape.run_words};
                *report = (struct kernels_report){0, 0};
                launch(is_strided ? KERNELS_repair_strided : KERNELS_repair_runs, shape, &arguments);
                get(after, data, sizeof after);
                assert_int_equal(report->is_raised, different);
                assert_int_equal(report->index, different ? 77 : 0);
                memcpy(wrong, different ? right : wrong, lengths[i]);
                assert_memory_equal(after, wrong, sizeof after);
                RUN(cuMemFree_v2(data));
                RUN(cuMemFree_v2(copy));
                RUN(cuMemFree_v2(count));
            }
        }
    }
    RUN(cuMemFreeHost(report));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_byte_shows),
        cmocka_unit_test(test_positions_show),
        cmocka_unit_test(test_sparse_buffers_do_not_collide),
        cmocka_unit_test(test_shapes_cover),
        cmocka_unit_test(test_fingerprint_on_device),
        cmocka_unit_test(test_compare_bytes_on_device),
        cmocka_unit_test(test_scan_pointers_on_device),
        cmocka_unit_test(test_fill_pattern_on_device),
        cmocka_unit_test(test_count_pattern_on_device),
        cmocka_unit_test(test_compare_fingerprints_on_device),
        cmocka_unit_test(test_repair_on_device),
    };
    return cmocka_run_group_tests(tests, open_device, NULL);
}
