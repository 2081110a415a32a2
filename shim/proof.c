#include "shim/proof.h"

#include "shim/driver.h"
#include "shim/kernels.h"
#include "shim/say.h"
#include "shim/space.h"
#include "shim/store.h"
#include "shim/tracing.h"

#include "shim/inside.h"

#define LOG_ENTRIES    1024ul /* fingerprints in the device table before it goes to the host */
#define PRINT_BYTES    16ul
#define MAX_LOG_CHUNKS (1u << 15)
#define SCANS          128ul
#define SCAN_WORDS     16ull /* per scan: the count, and up to 15 pointers */
#define MAX_FOUND      (1u << 16)
#define MAX_EXPECTED   (1u << 22)

extern const char reprise_kernels_ptx[];

struct scan {
    CUdeviceptr address;
    uint64_t bytes;
    uint32_t holder;
};

static struct {
    bool is_open, has_failed;
    CUmodule module;
    CUfunction kernels[KERNELS_COUNT];
    uint32_t processors;
    CUdeviceptr log_table, scan_table, scratch; /* scratch: one fingerprint, one count */
    uint64_t **log_chunks;                      /* pinned, LOG_ENTRIES fingerprints each */
    uint32_t log_chunk_count, log_count, log_flushed;
    struct scan scans[SCANS];
    uint32_t scan_count;
    struct last_use scanned; /* where the scans run */
    uint64_t *scan_host;     /* pinned */
    struct proof_pointer *found;
    unsigned char *scan_bytes;               /* pinned, for buffers with many pointers */
    struct kernels_report *report, *repairs; /* pinned */
    uint64_t *count_host;                    /* pinned */
    uint32_t plan_place, version_count;
    CUdeviceptr expected, actual;
    unsigned char *is_expected;
    uint64_t device_bytes;
} state = {.plan_place = SPACE_NONE};

static const char *const kernel_names[KERNELS_COUNT] = {
#define K(name) KERNELS_SYMBOL_PREFIX #name,
    KERNELS_LIST(K)
#undef K
};

/* ---- opening ---- */

static CUdeviceptr take_memory(uint64_t bytes, uint32_t stream, uint32_t *place)
{
    CUresult result;
    uint32_t taken = space_take_place(bytes, stream, &result);
    if (taken == SPACE_NONE) {
        return 0;
    }
    if (!frames_acquire(space_place(taken), stream, &result)) {
        space_give_place(taken);
        return 0;
    }
    state.device_bytes += space_allocation_footprint(bytes);
    tracing_own(bytes, "fingerprints");
    if (place != NULL) {
        *place = taken;
    }
    return space_place(taken)->base;
}

static void *take_pinned(uint64_t bytes)
{
    void *memory = NULL;
    if (driver.cuMemHostAlloc(&memory, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP) != CUDA_SUCCESS) {
        return NULL;
    }
    __builtin_memset(memory, 0, bytes);
    return memory;
}

static bool load_kernels(void)
{
    CUresult result = driver.cuModuleLoadData(&state.module, reprise_kernels_ptx);
    for (uint32_t i = 0; result == CUDA_SUCCESS && i < KERNELS_COUNT; i++) {
        result = driver.cuModuleGetFunction(&state.kernels[i], state.module, kernel_names[i]);
    }
    if (result != CUDA_SUCCESS) {
        say(SAY_ERROR, "the driver does not take our own kernels (error %d)", (int)result);
    }
    return result == CUDA_SUCCESS;
}

static bool open_tables(uint32_t stream)
{
    CUdevice device = 0;
    int processors = 1;
    if (driver.cuCtxGetDevice(&device) == CUDA_SUCCESS) {
        driver.cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
    }
    state.processors = (uint32_t)processors;
    state.log_table = take_memory(LOG_ENTRIES * PRINT_BYTES, stream, NULL);
    state.scan_table = take_memory(SCANS * SCAN_WORDS * 8, stream, NULL);
    state.scratch = take_memory(64, stream, NULL);
    state.log_chunks = store_reserve(sizeof *state.log_chunks * MAX_LOG_CHUNKS, "fingerprints");
    state.found = store_reserve(sizeof *state.found * MAX_FOUND, "pointers found");
    state.is_expected = store_reserve(MAX_EXPECTED, "expectations");
    state.scan_host = take_pinned(SCANS * SCAN_WORDS * 8);
    state.report = take_pinned(sizeof *state.report);
    state.repairs = take_pinned(sizeof *state.repairs);
    state.count_host = take_pinned(64);
    state.scan_bytes = take_pinned(256ul << 10);
    return state.log_table != 0 && state.scan_table != 0 && state.scratch != 0 && state.log_chunks != NULL &&
           state.found != NULL && state.is_expected != NULL && state.scan_host != NULL && state.report != NULL &&
           state.repairs != NULL && state.count_host != NULL && state.scan_bytes != NULL;
}

bool proof_open(uint32_t stream)
{
    if (state.is_open || state.has_failed) {
        return state.is_open;
    }
    state.is_open = load_kernels() && open_tables(stream);
    state.has_failed = !state.is_open;
    if (state.is_open) {
        driver.cuMemsetD8Async(state.log_table, 0, LOG_ENTRIES * PRINT_BYTES, streams_handle(stream));
        driver.cuMemsetD8Async(state.scan_table, 0, SCANS * SCAN_WORDS * 8, streams_handle(stream));
        streams_submitted(stream);
    }
    return state.is_open;
}

bool proof_is_open(void)
{
    return state.is_open;
}

uint64_t proof_device_bytes(void)
{
    return state.device_bytes;
}

/* ---- launching ---- */

static bool launch(enum kernels_index kernel, struct kernels_shape shape, void *arguments, uint32_t stream)
{
    void *parameters[] = {arguments};
    CUresult result = driver.cuLaunchKernel(state.kernels[kernel], shape.grid, 1, 1, shape.block, 1, 1, 0,
                                            streams_handle(stream), parameters, NULL);
    streams_submitted(stream);
    return result == CUDA_SUCCESS;
}

static bool fingerprint(CUdeviceptr address, uint64_t bytes, CUdeviceptr slot, uint32_t stream)
{
    struct kernels_shape shape = kernels_shape(bytes, state.processors);
    struct kernels_fingerprint arguments = {address, bytes, slot, shape.run_words};
    return launch(shape.is_strided ? KERNELS_fingerprint_strided : KERNELS_fingerprint_runs, shape, &arguments, stream);
}

/* ---- the recording log ---- */

static bool flush_log(uint32_t stream)
{
    if (state.log_flushed == state.log_count) {
        return true;
    }
    uint32_t chunk = state.log_flushed / LOG_ENTRIES, first = state.log_flushed % LOG_ENTRIES;
    uint32_t count = state.log_count - state.log_flushed;
    if (chunk == MAX_LOG_CHUNKS) {
        return false;
    }
    if (chunk == state.log_chunk_count) {
        state.log_chunks[chunk] = take_pinned(LOG_ENTRIES * PRINT_BYTES);
        if (state.log_chunks[chunk] == NULL) {
            return false;
        }
        state.log_chunk_count++;
    }
    CUresult result = driver.cuMemcpyDtoHAsync_v2(state.log_chunks[chunk] + 2 * first,
                                                  state.log_table + (uint64_t)first * PRINT_BYTES,
                                                  (size_t)count * PRINT_BYTES, streams_handle(stream));
    if (result == CUDA_SUCCESS) {
        result = driver.cuMemsetD8Async(state.log_table + (uint64_t)first * PRINT_BYTES, 0, (size_t)count * PRINT_BYTES,
                                        streams_handle(stream));
    }
    streams_submitted(stream);
    state.log_flushed = state.log_count;
    return result == CUDA_SUCCESS;
}

static CUdeviceptr next_entry(void)
{
    return state.log_table + (uint64_t)(state.log_count % LOG_ENTRIES) * PRINT_BYTES;
}

static uint32_t add_entry(bool is_launched, uint32_t stream)
{
    uint32_t index = state.log_count;
    if (!is_launched) {
        return PROOF_NONE;
    }
    state.log_count++;
    if (state.log_count % LOG_ENTRIES == 0 && !flush_log(stream)) {
        return PROOF_NONE;
    }
    return index;
}

uint32_t proof_log(CUdeviceptr address, uint64_t bytes, uint32_t stream)
{
    return add_entry(fingerprint(address, bytes, next_entry(), stream), stream);
}

/* Another one for each allocation, the same from run to run. */
static uint64_t pattern_of(CUdeviceptr address)
{
    CUdeviceptr begin, end;
    frames_arena(&begin, &end);
    return address - begin + 1;
}

uint32_t proof_log_unwritten(CUdeviceptr address, uint64_t bytes, uint32_t stream)
{
    struct kernels_shape shape = kernels_shape(bytes, state.processors);
    struct kernels_count_pattern arguments = {address, bytes, pattern_of(address), next_entry(), shape.run_words};
    return add_entry(launch(shape.is_strided ? KERNELS_count_pattern_strided : KERNELS_count_pattern_runs, shape,
                            &arguments, stream),
                     stream);
}

void proof_log_collect(uint32_t stream)
{
    flush_log(stream);
    streams_drain(stream);
}

const uint64_t *proof_log_get(uint32_t index)
{
    return index < state.log_flushed ? state.log_chunks[index / LOG_ENTRIES] + 2ull * (index % LOG_ENTRIES) : NULL;
}

/* Bytes that nobody wrote come as words, at the ends (an odd tail), or many together (every second element). One in 128
 * buffers is suspected for nothing: it is filled in vain. */
bool proof_is_unwritten(uint32_t index, uint64_t bytes)
{
    const uint64_t *count = proof_log_get(index);
    if (count == NULL) {
        return false;
    }
    uint64_t equal = count[1] % KERNELS_EDGE, chance = bytes / 256, surplus = equal > chance ? equal - chance : 0;
    return count[0] > 0 || count[1] >= KERNELS_EDGE || surplus * surplus > 25 * chance + 16;
}

void proof_log_reset(void)
{
    if (state.log_count != state.log_flushed) {
        uint32_t first = state.log_flushed % LOG_ENTRIES;
        driver.cuCtxSynchronize();
        driver.cuMemsetD8_v2(state.log_table + (uint64_t)first * PRINT_BYTES, 0,
                             (size_t)(state.log_count - state.log_flushed) * PRINT_BYTES);
        driver.cuCtxSynchronize();
    }
    state.log_count = state.log_flushed = 0;
}

static void fill(CUdeviceptr address, uint64_t bytes, uint64_t seed, uint32_t stream)
{
    struct kernels_shape shape = kernels_shape(bytes, state.processors);
    struct kernels_fill_pattern arguments = {address, bytes, seed, shape.run_words};
    launch(shape.is_strided ? KERNELS_fill_pattern_strided : KERNELS_fill_pattern_runs, shape, &arguments, stream);
}

void proof_fill(CUdeviceptr address, uint64_t bytes, uint32_t stream)
{
    fill(address, bytes, pattern_of(address), stream);
}

void proof_fill_alike(CUdeviceptr address, uint64_t bytes, uint32_t stream)
{
    fill(address, bytes, 0, stream);
}

/* ---- pointers in memory ---- */

static uint32_t keep_found(uint32_t count, uint64_t value, uint32_t holder, bool *is_overfull)
{
    if (count == MAX_FOUND) {
        *is_overfull = true;
        return count;
    }
    state.found[count] = (struct proof_pointer){value, holder};
    return count + 1;
}

/* More pointers than the scan's list holds: the buffer itself is fetched. */
static uint32_t read_buffer(const struct scan *scan, uint32_t count, bool *is_overfull)
{
    CUdeviceptr begin, end;
    frames_arena(&begin, &end);
    if (driver.cuMemcpyDtoH_v2(state.scan_bytes, scan->address, scan->bytes) != CUDA_SUCCESS) {
        *is_overfull = true;
        return count;
    }
    for (uint64_t i = 0; i + 8 <= scan->bytes; i += 8) {
        uint64_t word;
        __builtin_memcpy(&word, state.scan_bytes + i, 8);
        if (word - begin < end - begin) {
            count = keep_found(count, word, scan->holder, is_overfull);
        }
    }
    return count;
}

bool proof_scan_is_pending(void)
{
    return state.scan_count > 0;
}

static uint32_t collect_scans(uint32_t stream, uint32_t count, bool *is_overfull)
{
    streams_order(state.scanned.streams, stream);
    driver.cuMemcpyDtoHAsync_v2(state.scan_host, state.scan_table, (size_t)state.scan_count * SCAN_WORDS * 8,
                                streams_handle(stream));
    driver.cuMemsetD8Async(state.scan_table, 0, (size_t)state.scan_count * SCAN_WORDS * 8, streams_handle(stream));
    streams_submitted(stream);
    streams_drain(stream);
    for (uint32_t i = 0; i < state.scan_count; i++) {
        const uint64_t *words = state.scan_host + (size_t)i * SCAN_WORDS;
        if (words[0] >= SCAN_WORDS) {
            count = read_buffer(&state.scans[i], count, is_overfull);
            continue;
        }
        for (uint64_t j = 0; j < words[0]; j++) {
            count = keep_found(count, words[1 + j], state.scans[i].holder, is_overfull);
        }
    }
    state.scan_count = 0;
    state.scanned.streams = 0;
    return count;
}

static struct {
    uint32_t count;
    bool is_overfull;
} early; /* found by scans that were collected because the table was full */

void proof_scan(CUdeviceptr address, uint64_t bytes, uint32_t holder, uint32_t stream)
{
    if (state.scan_count == SCANS) {
        early.count = collect_scans(stream, early.count, &early.is_overfull);
    }
    CUdeviceptr begin, end, slot = state.scan_table + (uint64_t)state.scan_count * SCAN_WORDS * 8;
    frames_arena(&begin, &end);
    struct kernels_shape shape = kernels_shape(bytes, state.processors);
    struct kernels_scan_pointers arguments = {address,  bytes,          begin, end,
                                              slot + 8, SCAN_WORDS - 1, slot,  shape.run_words};
    launch(shape.is_strided ? KERNELS_scan_pointers_strided : KERNELS_scan_pointers_runs, shape, &arguments, stream);
    last_use_note(&state.scanned, stream);
    state.scans[state.scan_count++] = (struct scan){address, bytes, holder};
}

uint32_t proof_scan_collect(uint32_t stream, const struct proof_pointer **found, bool *is_overfull)
{
    uint32_t count = collect_scans(stream, early.count, &early.is_overfull);
    *found = state.found;
    *is_overfull = early.is_overfull;
    early.count = 0;
    early.is_overfull = false;
    return count;
}

/* ---- a plan's comparisons ---- */

bool proof_plan(uint32_t count, uint32_t stream)
{
    if (state.plan_place != SPACE_NONE) {
        last_use_note(&space_place(state.plan_place)->last, stream);
        state.device_bytes -= space_allocation_footprint(space_place(state.plan_place)->bytes);
        space_give_place(state.plan_place);
        state.plan_place = SPACE_NONE;
    }
    state.version_count = count;
    if (count == 0) {
        return true;
    }
    state.expected = take_memory((uint64_t)count * PRINT_BYTES * 2, stream, &state.plan_place);
    state.actual = state.expected + (uint64_t)count * PRINT_BYTES;
    return state.expected != 0;
}

void proof_new_iteration(uint32_t stream)
{
    if (state.version_count > 0) {
        driver.cuMemsetD8Async(state.expected, 0, (size_t)state.version_count * PRINT_BYTES * 2,
                               streams_handle(stream));
        streams_submitted(stream);
        __builtin_memset(state.is_expected, 0, state.version_count);
    }
}

void proof_expect(uint32_t version, CUdeviceptr address, uint64_t bytes, uint32_t stream)
{
    state.is_expected[version] = fingerprint(address, bytes, state.expected + (uint64_t)version * PRINT_BYTES, stream);
}

bool proof_is_expected(uint32_t version)
{
    return version < state.version_count && state.is_expected[version];
}

void proof_rebuilt(uint32_t version, CUdeviceptr address, uint64_t bytes, uint32_t stream)
{
    uint64_t offset = (uint64_t)version * PRINT_BYTES;
    fingerprint(address, bytes, state.actual + offset, stream);
    struct kernels_compare_fingerprints arguments = {.expected = state.expected + offset,
                                                     .actual = state.actual + offset,
                                                     .count = 1,
                                                     .report = (uint64_t)(uintptr_t)state.report,
                                                     .first = version,
                                                     .is_reset = 1};
    launch(KERNELS_compare_fingerprints, kernels_pair_shape(1), &arguments, stream);
}

bool proof_mismatch(uint32_t *version)
{
    if (!__atomic_load_n(&state.report->is_raised, __ATOMIC_ACQUIRE)) {
        return false;
    }
    *version = (uint32_t)state.report->index;
    return true;
}

bool proof_verify_now(uint32_t version, CUdeviceptr address, uint64_t bytes, uint32_t stream)
{
    proof_rebuilt(version, address, bytes, stream);
    streams_drain(stream);
    uint32_t differing;
    if (!proof_mismatch(&differing)) {
        return true;
    }
    if (differing == version) {
        __atomic_store_n(&state.report->is_raised, 0, __ATOMIC_RELEASE);
    }
    return false;
}

/* Enqueues the count of differing words into state.scratch. */
static bool compare(CUdeviceptr address, const void *host, uint64_t bytes, uint32_t stream)
{
    struct kernels_shape shape = kernels_shape(bytes, state.processors);
    struct kernels_compare_bytes arguments = {address, (uint64_t)(uintptr_t)host, bytes, state.scratch,
                                              shape.run_words};
    return driver.cuMemsetD8Async(state.scratch, 0, 8, streams_handle(stream)) == CUDA_SUCCESS &&
           launch(shape.is_strided ? KERNELS_compare_bytes_strided : KERNELS_compare_bytes_runs, shape, &arguments,
                  stream);
}

bool proof_equals(CUdeviceptr address, const void *host, uint64_t bytes, uint32_t stream)
{
    bool is_done =
        compare(address, host, bytes, stream) &&
        driver.cuMemcpyDtoHAsync_v2(state.count_host, state.scratch, 8, streams_handle(stream)) == CUDA_SUCCESS;
    streams_submitted(stream);
    streams_drain(stream);
    return is_done && state.count_host[0] == 0; /* what could not be compared counts as different */
}

void proof_audit(uint32_t version, CUdeviceptr address, const void *host, uint64_t bytes, uint32_t stream)
{
    struct kernels_shape shape = kernels_shape(bytes, state.processors);
    struct kernels_repair repair = {.data = address,
                                    .copy = (uint64_t)(uintptr_t)host,
                                    .bytes = bytes,
                                    .different = state.scratch,
                                    .report = (uint64_t)(uintptr_t)state.repairs,
                                    .index = version,
                                    .run_words = shape.run_words};
    compare(address, host, bytes, stream);
    launch(shape.is_strided ? KERNELS_repair_strided : KERNELS_repair_runs, shape, &repair, stream);
}

bool proof_repaired(uint32_t *version)
{
    if (!__atomic_load_n(&state.repairs->is_raised, __ATOMIC_ACQUIRE)) {
        return false;
    }
    *version = (uint32_t)state.repairs->index;
    __atomic_store_n(&state.repairs->is_raised, 0, __ATOMIC_RELEASE);
    return true;
}
