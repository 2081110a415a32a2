/* The kernels of shim/kernels.h in C. */
#include "tests/unit/fake_inside.h"

#include "shim/kernels.h"

#include <string.h>

const char reprise_kernels_ptx[] = "";

static uint64_t load_word(uint64_t data, uint64_t bytes, uint64_t index)
{
    uint64_t word = 0, left = bytes - 8 * index;
    memcpy(&word, (const unsigned char *)data + 8 * index, left < 8 ? left : 8);
    return word;
}

static void fingerprint(const void *opaque)
{
    const struct kernels_fingerprint *a = opaque;
    uint64_t *slot = (uint64_t *)a->slot;
    for (uint64_t i = 0; i < a->bytes / 8 + (a->bytes % 8 != 0); i++) {
        kernels_absorb(load_word(a->data, a->bytes, i), (uint32_t)i, &slot[0], &slot[1]);
    }
}

static void compare_bytes(const void *opaque)
{
    const struct kernels_compare_bytes *a = opaque;
    for (uint64_t i = 0; i < a->bytes / 8 + (a->bytes % 8 != 0); i++) {
        *(uint64_t *)a->different += load_word(a->left, a->bytes, i) != load_word(a->right, a->bytes, i);
    }
}

static void scan_pointers(const void *opaque)
{
    const struct kernels_scan_pointers *a = opaque;
    uint64_t *found = (uint64_t *)a->found;
    for (uint64_t i = 0; i < a->bytes / 8; i++) {
        uint64_t word = load_word(a->data, a->bytes, i);
        if (word >= a->low && word < a->high) {
            if (*found < a->capacity) {
                ((uint64_t *)a->list)[*found] = word;
            }
            ++*found;
        }
    }
}

static void fill_pattern(const void *opaque)
{
    const struct kernels_fill_pattern *a = opaque;
    for (uint64_t i = 0; i < a->bytes; i += 8) {
        uint64_t word = kernels_pattern(i / 8, a->seed);
        memcpy((unsigned char *)a->data + i, &word, a->bytes - i < 8 ? a->bytes - i : 8);
    }
}

static void count_pattern(const void *opaque)
{
    const struct kernels_count_pattern *a = opaque;
    const unsigned char *bytes = (const unsigned char *)a->data;
    uint64_t *count = (uint64_t *)a->count;
    for (uint64_t i = 0, run = 0; i < a->bytes; i++) {
        uint64_t word = kernels_pattern(i / 8, a->seed);
        bool is_equal = bytes[i] == (unsigned char)(word >> (i % 8 * 8)), is_last = i + 1 == a->bytes;
        run = (i % 4 == 0 ? 0 : run) + is_equal;
        count[0] += (i % 4 == 3 || is_last) && run == i % 4 + 1;
        count[1] += is_equal ? 1 + (i == 0 ? KERNELS_EDGE : 0) + (is_last ? KERNELS_EDGE : 0) : 0;
    }
}

static void repair(const void *opaque)
{
    const struct kernels_repair *a = opaque;
    if (*(const uint64_t *)a->different != 0) {
        memcpy((void *)a->data, (const void *)a->copy, a->bytes);
        struct kernels_report *report = (struct kernels_report *)a->report;
        report->index = a->index;
        report->is_raised = 1;
    }
}

static void compare_fingerprints(const void *opaque)
{
    const struct kernels_compare_fingerprints *a = opaque;
    for (uint64_t i = 0; i < a->count; i++) {
        const uint64_t *expected = (const uint64_t *)a->expected + 2 * i;
        uint64_t *actual = (uint64_t *)a->actual + 2 * i;
        uint64_t times = a->times != 0 ? ((const uint32_t *)a->times)[i] : 1;
        struct kernels_report *report = (struct kernels_report *)a->report;
        if (actual[0] != times * expected[0] || actual[1] != times * expected[1]) {
            report->index = a->first + i;
            report->is_raised = 1;
        }
        if (a->is_reset) {
            actual[0] = actual[1] = 0;
        }
    }
}

static const struct {
    const char *name;
    fake_kernel *run;
    uint32_t argument_bytes;
} table[] = {
    {"reprise_fingerprint_runs", fingerprint, sizeof(struct kernels_fingerprint)},
    {"reprise_fingerprint_strided", fingerprint, sizeof(struct kernels_fingerprint)},
    {"reprise_compare_bytes_runs", compare_bytes, sizeof(struct kernels_compare_bytes)},
    {"reprise_compare_bytes_strided", compare_bytes, sizeof(struct kernels_compare_bytes)},
    {"reprise_scan_pointers_runs", scan_pointers, sizeof(struct kernels_scan_pointers)},
    {"reprise_scan_pointers_strided", scan_pointers, sizeof(struct kernels_scan_pointers)},
    {"reprise_fill_pattern_runs", fill_pattern, sizeof(struct kernels_fill_pattern)},
    {"reprise_fill_pattern_strided", fill_pattern, sizeof(struct kernels_fill_pattern)},
    {"reprise_count_pattern_runs", count_pattern, sizeof(struct kernels_count_pattern)},
    {"reprise_count_pattern_strided", count_pattern, sizeof(struct kernels_count_pattern)},
    {"reprise_repair_runs", repair, sizeof(struct kernels_repair)},
    {"reprise_repair_strided", repair, sizeof(struct kernels_repair)},
    {"reprise_compare_fingerprints", compare_fingerprints, sizeof(struct kernels_compare_fingerprints)},
};

CUfunction fake_own_kernel(const char *name)
{
    static CUfunction functions[sizeof table / sizeof table[0]];
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (strcmp(table[i].name, name) == 0) {
            if (functions[i] == NULL) {
                functions[i] = fake_function(name, table[i].argument_bytes, table[i].run, 1000);
            }
            return functions[i];
        }
    }
    return NULL;
}
