#include "tests/device/settings.h"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct settings the_settings;
static bool is_valid;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool parse_count(const char *text, uint64_t *out, const char **rest)
{
    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    char *end;
    *out = strtoull(text, &end, 0);
    *rest = end;
    return errno == 0;
}

static bool parse_size(const char *text, uint64_t *out)
{
    static const struct {
        const char *suffix;
        unsigned shift;
    } units[] = {
        {"", 0}, {"K", 10}, {"KiB", 10}, {"M", 20}, {"MiB", 20}, {"G", 30}, {"GiB", 30},
    };
    const char *rest;
    if (!parse_count(text, out, &rest))
        return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(rest, units[i].suffix) != 0)
            continue;
        if (*out > UINT64_MAX >> units[i].shift)
            return false;
        *out <<= units[i].shift;
        return true;
    }
    return false;
}

static bool parse_capability(const char *text, uint32_t *out)
{
    unsigned major, minor;
    char excess;
    if (sscanf(text, "%2u.%1u%c", &major, &minor, &excess) != 2)
        return false;
    *out = major * 10 + minor;
    return *out >= 50;
}

static bool refuse(const char *name, const char *text, const char *expected)
{
    char line[512];
    int length = snprintf(line, sizeof line, "cpu device: %s=%s: expected %s\n", name, text, expected);
    if (length > 0)
        (void)!write(2, line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
    return false;
}

static bool read_size(const char *name, size_t *out, const char *expected)
{
    const char *text = getenv(name);
    if (text == NULL)
        return true;
    uint64_t value;
    if (!parse_size(text, &value) || value == 0)
        return refuse(name, text, expected);
    *out = value;
    return true;
}

static bool read_number(const char *name, uint64_t low, uint64_t high, uint64_t *out, const char *expected)
{
    const char *text = getenv(name), *rest;
    if (text == NULL)
        return true;
    uint64_t value;
    if (!parse_count(text, &value, &rest) || *rest != '\0' || value < low || value > high)
        return refuse(name, text, expected);
    *out = value;
    return true;
}

static bool read_memory(struct settings *out)
{
    out->memory_bytes = (size_t)1 << 30;
    out->frame_bytes = (size_t)64 << 10;
    if (!read_size("CPUDEV_MEMORY", &out->memory_bytes, "a size such as 512MiB"))
        return false;
    if (!read_size("CPUDEV_GRANULARITY", &out->frame_bytes, "a size such as 64KiB"))
        return false;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), frame = out->frame_bytes;
    if (frame < page || (frame & (frame - 1)) != 0)
        return refuse("CPUDEV_GRANULARITY", getenv("CPUDEV_GRANULARITY"), "a power of two of at least a page");
    out->memory_bytes = out->memory_bytes / frame * frame;
    if (out->memory_bytes == 0)
        return refuse("CPUDEV_MEMORY", getenv("CPUDEV_MEMORY"), "at least one CPUDEV_GRANULARITY");
    return true;
}

void settings_uuid(unsigned device_id, unsigned char uuid[16])
{
    char text[24];
    snprintf(text, sizeof text, "cpu-device-%05u", device_id);
    memcpy(uuid, text, 16);
}

void settings_print_uuid(unsigned device_id, char text[48])
{
    unsigned char uuid[16];
    settings_uuid(device_id, uuid);
    char *at = text + sprintf(text, "GPU-");
    for (int i = 0; i < 16; i++)
        at += sprintf(at, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", uuid[i]);
}

/* A number, or the beginning of one UUID and of no other. */
static bool find_device(const char *token, size_t length, unsigned count, unsigned *out)
{
    unsigned matches = 0, digits = 0;
    char text[48];
    while (digits < length && token[digits] >= '0' && token[digits] <= '9')
        digits++;
    if (length > 0 && digits == length && length < 6) {
        *out = (unsigned)atoi(token);
        return *out < count;
    }
    for (unsigned i = 0; i < count && length > 4; i++) {
        settings_print_uuid(i, text);
        if (strncmp(text, token, length) == 0) {
            *out = i;
            matches++;
        }
    }
    return matches == 1;
}

static bool is_listed(const struct settings *settings, unsigned device_id)
{
    for (unsigned i = 0; i < settings->device_count; i++)
        if (settings->device_ids[i] == device_id)
            return true;
    return false;
}

/* As the driver reads it: the list ends at the first entry that names no device, or one named before. */
static void choose_devices(struct settings *out, unsigned count)
{
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    for (unsigned i = 0; list == NULL && i < count; i++)
        out->device_ids[out->device_count++] = i;
    while (list != NULL && *list != '\0') {
        size_t length = strcspn(list, ",");
        unsigned device_id = 0;
        if (!find_device(list, length, count, &device_id) || is_listed(out, device_id))
            return;
        out->device_ids[out->device_count++] = device_id;
        list += length + (list[length] == ',');
    }
}

static bool read_all(struct settings *out)
{
    uint64_t threads = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t count = 1;
    out->capability = 121;
    if (!read_number("CPUDEV_COUNT", 1, DEVICES_MAX, &count, "a number from 1 to 16"))
        return false;
    out->device_total = (unsigned)count;
    choose_devices(out, (unsigned)count);
    if (!read_memory(out))
        return false;
    if (!read_number("CPUDEV_THREADS", 1, 256, &threads, "a number from 1 to 256"))
        return false;
    if (!read_number("CPUDEV_JITTER", 0, UINT64_MAX, &out->jitter, "a seed, a whole number"))
        return false;
    out->threads = (uint32_t)(threads > 256 ? 256 : threads);
    const char *capability = getenv("CPUDEV_CAPABILITY");
    if (capability != NULL && !parse_capability(capability, &out->capability))
        return refuse("CPUDEV_CAPABILITY", capability, "a compute capability such as 12.1");
    const char *clock = getenv("CPUDEV_CLOCK");
    out->counts_work = clock != NULL && strcmp(clock, "work") == 0;
    if (clock != NULL && !out->counts_work && strcmp(clock, "wall") != 0)
        return refuse("CPUDEV_CLOCK", clock, "wall or work");
    const char *stats = getenv("CPUDEV_STATS");
    if (stats != NULL && *stats != '\0')
        out->stats_path = strdup(stats);
    return true;
}

static void read_once(void)
{
    is_valid = read_all(&the_settings);
}

bool settings_are_valid(void)
{
    pthread_once(&once, read_once);
    return is_valid;
}

const struct settings *settings(void)
{
    pthread_once(&once, read_once);
    return &the_settings;
}
