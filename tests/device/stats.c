#include "tests/device/stats.h"
#include "tests/device/settings.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum counter { PEAK, LAUNCHES, COMPILED, DEVICE_PEAK, COUNTERS = DEVICE_PEAK + DEVICES_MAX };

#define DIGITS 20
static const char *const before[DEVICE_PEAK + 1] = {
    "{\"peak_bytes\":", ",\"launches\":", ",\"kernels_compiled\":", ",\"device_peak_bytes\":["};

static struct {
    _Atomic uint64_t values[COUNTERS];
    char *fields[COUNTERS]; /* DIGITS bytes each, in the mapped file; NULL: no file */
    pthread_mutex_t lock;   /* of the fields' bytes */
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void print(enum counter counter)
{
    if (state.fields[counter] == NULL)
        return;
    pthread_mutex_lock(&state.lock);
    uint64_t value = atomic_load_explicit(&state.values[counter], memory_order_relaxed);
    char *digit = state.fields[counter] + DIGITS;
    do {
        *--digit = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    pthread_mutex_unlock(&state.lock);
}

static size_t lay_out(char *text, size_t at[COUNTERS], unsigned count)
{
    size_t length = 0;
    for (unsigned i = 0; i < count; i++) {
        const char *key = i <= DEVICE_PEAK ? before[i] : ",";
        memcpy(text + length, key, strlen(key));
        length += strlen(key);
        at[i] = length;
        memset(text + length, ' ', DIGITS);
        length += DIGITS;
        text[length - 1] = '0';
    }
    text[length++] = ']';
    text[length++] = '}';
    text[length++] = '\n';
    return length;
}

void stats_open(const char *path, unsigned device_count)
{
    if (path == NULL || state.fields[0] != NULL)
        return;
    char text[1024];
    unsigned count = DEVICE_PEAK + device_count;
    size_t at[COUNTERS], length = lay_out(text, at, count);
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    void *map = MAP_FAILED;
    if (file >= 0 && write(file, text, length) == (ssize_t)length)
        map = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0)
        close(file);
    if (map == MAP_FAILED) {
        fprintf(stderr, "cpu device: CPUDEV_STATS=%s: cannot be written\n", path);
        return;
    }
    for (unsigned i = 0; i < count; i++)
        state.fields[i] = (char *)map + at[i];
    for (unsigned i = 0; i < count; i++)
        print((enum counter)i);
}

void stats_add_launch(void)
{
    atomic_fetch_add_explicit(&state.values[LAUNCHES], 1, memory_order_relaxed);
    print(LAUNCHES);
}

void stats_add_compiled(void)
{
    atomic_fetch_add_explicit(&state.values[COMPILED], 1, memory_order_relaxed);
    print(COMPILED);
}

void stats_set_peak(uint64_t bytes)
{
    atomic_store_explicit(&state.values[PEAK], bytes, memory_order_relaxed);
    print(PEAK);
}

void stats_set_device_peak(int device, uint64_t bytes)
{
    atomic_store_explicit(&state.values[DEVICE_PEAK + device], bytes, memory_order_relaxed);
    print((enum counter)(DEVICE_PEAK + device));
}

uint64_t stats_launches(void)
{
    return atomic_load_explicit(&state.values[LAUNCHES], memory_order_relaxed);
}

uint64_t stats_peak(void)
{
    return atomic_load_explicit(&state.values[PEAK], memory_order_relaxed);
}
