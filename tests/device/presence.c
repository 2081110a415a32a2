#include "tests/device/presence.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define RECORD_MAGIC 0x31307470 /* changes with the record's form */

struct record {
    uint32_t magic, pid;
    uint64_t start_time; /* of the process, as the kernel counts: tells two of one id apart */
    _Atomic uint64_t used[DEVICES_MAX];
    _Atomic uint64_t busy[DEVICES_MAX];       /* nanoseconds of the pieces of work that have ended */
    _Atomic uint64_t busy_since[DEVICES_MAX]; /* when the one under way began; 0: none */
};

static struct record *own; /* NULL: not seen */
static char own_path[544];

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* 0: there is no such process. */
static uint64_t start_time_of(uint32_t pid)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    text[length < 0 ? 0 : length] = '\0';
    /* The name may hold blanks and brackets: fields are counted from behind it. The state is the third field. */
    const char *at = strrchr(text, ')');
    char state = 0;
    unsigned long long start = 0;
    if (at == NULL || sscanf(at + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
                             &state, &start) != 2)
        return 0;
    return state == 'Z' || state == 'X' ? 0 : start;
}

static void folder(char *path, size_t room)
{
    const char *chosen = getenv("CPUDEV_RUN"), *runtime = getenv("XDG_RUNTIME_DIR");
    if (chosen != NULL && *chosen != '\0')
        snprintf(path, room, "%s", chosen);
    else if (runtime != NULL && *runtime != '\0')
        snprintf(path, room, "%s/reprise-cpudev", runtime);
    else
        snprintf(path, room, "/tmp/reprise-cpudev-run-%u", (unsigned)geteuid());
}

/* The folder, made where it is missing; -1 unless it is this user's alone. */
static int open_folder(char *path, size_t room)
{
    folder(path, room);
    mkdir(path, 0700);
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat status;
    if (directory >= 0 && (fstat(directory, &status) != 0 || status.st_uid != geteuid() || (status.st_mode & 022))) {
        close(directory);
        directory = -1;
    }
    return directory;
}

static bool read_record(int directory, const char *name, struct record *out)
{
    int file = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0)
        return false;
    ssize_t length = read(file, out, sizeof *out);
    close(file);
    return length == (ssize_t)sizeof *out;
}

static struct presence as_presence(const struct record *record)
{
    struct presence presence = {.pid = record->pid};
    uint64_t time = now();
    for (size_t i = 0; i < DEVICES_MAX; i++) {
        uint64_t since = atomic_load(&record->busy_since[i]);
        presence.used[i] = atomic_load(&record->used[i]);
        presence.busy[i] = atomic_load(&record->busy[i]) + (since != 0 && since < time ? time - since : 0);
    }
    return presence;
}

size_t presence_list(struct presence *list, size_t room)
{
    char path[512];
    size_t count = 0;
    int directory = open_folder(path, sizeof path);
    DIR *entries = directory < 0 ? NULL : fdopendir(directory);
    if (entries == NULL) {
        if (directory >= 0)
            close(directory);
        return 0;
    }
    for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        char *end;
        unsigned long pid = strtoul(entry->d_name, &end, 10);
        struct record record;
        if (*end != '\0' || end == entry->d_name)
            continue;
        uint64_t start = start_time_of((uint32_t)pid);
        if (!read_record(directory, entry->d_name, &record) || record.magic != RECORD_MAGIC)
            continue;
        if (record.pid != pid || record.start_time != start) {
            unlinkat(directory, entry->d_name, 0);
            continue;
        }
        if (count < room)
            list[count] = as_presence(&record);
        count++;
    }
    closedir(entries);
    return count;
}

void presence_open(void)
{
    char path[512];
    struct record record = {.magic = RECORD_MAGIC, .pid = (uint32_t)getpid()};
    record.start_time = start_time_of(record.pid);
    if (own != NULL || record.start_time == 0)
        return;
    presence_list(NULL, 0); /* drops what was left behind */
    int directory = open_folder(path, sizeof path);
    if (directory < 0)
        return;
    char name[16];
    snprintf(name, sizeof name, "%u", record.pid);
    snprintf(own_path, sizeof own_path, "%s/%s", path, name);
    unlinkat(directory, name, 0);
    int file = openat(directory, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    void *map = MAP_FAILED;
    if (file >= 0 && write(file, &record, sizeof record) == (ssize_t)sizeof record)
        map = mmap(NULL, sizeof record, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0)
        close(file);
    close(directory);
    own = map == MAP_FAILED ? NULL : map;
}

__attribute__((destructor)) static void leave(void)
{
    if (own != NULL && own->pid == (uint32_t)getpid()) /* not a child of fork */
        unlink(own_path);
}

void presence_set_used(unsigned device_id, uint64_t bytes)
{
    if (own != NULL)
        atomic_store_explicit(&own->used[device_id], bytes, memory_order_relaxed);
}

void presence_begin(unsigned device_id)
{
    if (own != NULL)
        atomic_store_explicit(&own->busy_since[device_id], now(), memory_order_relaxed);
}

void presence_end(unsigned device_id)
{
    if (own == NULL)
        return;
    uint64_t since = atomic_load_explicit(&own->busy_since[device_id], memory_order_relaxed);
    uint64_t busy = atomic_load_explicit(&own->busy[device_id], memory_order_relaxed);
    atomic_store_explicit(&own->busy_since[device_id], 0, memory_order_relaxed);
    atomic_store_explicit(&own->busy[device_id], busy + now() - since, memory_order_relaxed);
}
