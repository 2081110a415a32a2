/* Fuzzing without any tool: samples are damaged in a few places and fed to the target, over and over.
 *
 *   NAME run SECONDS SEED CURRENT SAMPLE...   prints how many inputs there were; the file CURRENT always holds the
 * input that is being fed, so that it is there when the process is not NAME feed FILE...                         each
 * as it is NAME samples DIRECTORY                    writes the target's own samples NAME tokens prints the tokens as a
 * dictionary of libFuzzer */
#include "tests/fuzz/fuzz.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define SAMPLE_MOST ((size_t)1 << 20)

struct sample {
    unsigned char *bytes;
    size_t count;
};

static struct sample read_sample(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct sample sample = {malloc(SAMPLE_MOST), 0};
    if (!file || !sample.bytes) {
        fprintf(stderr, "%s: cannot be read\n", path);
        exit(2);
    }
    sample.count = fread(sample.bytes, 1, SAMPLE_MOST, file);
    fclose(file);
    return sample;
}

/* A copy of just these bytes: one too many is seen. */
static void feed_exactly(const unsigned char *bytes, size_t count)
{
    unsigned char *exact = malloc(count ? count : 1);
    if (!exact)
        exit(2);
    memcpy(exact, bytes, count);
    fuzz_feed(exact, count);
    free(exact);
}

/* ---- damage ---- */

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 24;
}

static size_t token_count(void)
{
    size_t count = 0;
    while (fuzz_tokens[count])
        count++;
    return count;
}

static size_t insert(unsigned char *bytes, size_t count, size_t most, size_t at, const char *token)
{
    size_t length = strlen(token);
    if (count + length > most)
        return count;
    memmove(bytes + at + length, bytes + at, count - at);
    memcpy(bytes + at, token, length);
    return count + length;
}

/* One edit of bytes[0 .. count), room for `most`; returns the new count. */
static size_t edit(unsigned char *bytes, size_t count, size_t most, uint64_t *random)
{
    size_t at = count ? next_random(random) % count : 0, tokens = token_count();
    size_t from = count ? next_random(random) % count : 0, length = next_random(random) % 200;
    switch (count ? next_random(random) % 6 : 5) {
    case 0:
        bytes[at] = (unsigned char)next_random(random);
        return count;
    case 1:
        bytes[at] ^= (unsigned char)(1 << next_random(random) % 8);
        return count;
    case 2: /* a piece is cut out */
        if (at + length > count)
            return at;
        memmove(bytes + at, bytes + at + length, count - at - length);
        return count - length;
    case 3: /* a piece from elsewhere over this one */
        length %= 64;
        if (from + length <= count && at + length <= count)
            memmove(bytes + at, bytes + from, length);
        return count;
    case 4: /* a number one up or down, or a bound */
        if (bytes[at] >= '0' && bytes[at] <= '9')
            bytes[at] = (unsigned char)("0123456789"[next_random(random) % 10]);
        else
            bytes[at] = (unsigned char[]){0, 1, 0x7f, 0x80, 0xff}[next_random(random) % 5];
        return count;
    default:
        return insert(bytes, count, most, at, tokens ? fuzz_tokens[next_random(random) % tokens] : "\xff\xff\xff\xff");
    }
}

/* ---- the file that holds the input: its size, then its bytes ---- */

static unsigned char *map_current(const char *path, size_t bytes)
{
    int descriptor = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    void *map = MAP_FAILED;
    if (descriptor >= 0 && ftruncate(descriptor, (off_t)(bytes + 8)) == 0)
        map = mmap(NULL, bytes + 8, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (map == MAP_FAILED) {
        fprintf(stderr, "%s: cannot be written\n", path);
        exit(2);
    }
    close(descriptor);
    return map;
}

static uint64_t run(time_t seconds, uint64_t seed, const char *current, const struct sample *samples, size_t count)
{
    size_t most = SAMPLE_MOST + 4096;
    unsigned char *map = map_current(current, most), *work = map + 8;
    uint64_t rounds = 0, random = seed;
    for (time_t end = time(NULL) + seconds; time(NULL) < end; rounds++) {
        const struct sample *sample = &samples[next_random(&random) % count];
        uint64_t bytes = sample->count;
        memcpy(work, sample->bytes, bytes);
        for (uint64_t edits = 1 + next_random(&random) % 12; edits > 0; edits--)
            bytes = edit(work, bytes, most, &random);
        memcpy(map, &bytes, 8);
        feed_exactly(work, bytes);
    }
    munmap(map, most + 8);
    return rounds;
}

static int run_arguments(int argc, char **argv)
{
    size_t count = (size_t)(argc - 5);
    struct sample *samples = calloc(count, sizeof *samples);
    if (!samples)
        return 2;
    for (size_t i = 0; i < count; i++)
        samples[i] = read_sample(argv[5 + i]);
    uint64_t rounds = run(strtol(argv[2], NULL, 10), strtoull(argv[3], NULL, 10), argv[4], samples, count);
    for (size_t i = 0; i < count; i++)
        free(samples[i].bytes);
    free(samples);
    printf("%llu inputs\n", (unsigned long long)rounds);
    return 0;
}

static void print_tokens(void)
{
    for (size_t i = 0; fuzz_tokens[i]; i++) {
        printf("\"");
        for (const unsigned char *c = (const unsigned char *)fuzz_tokens[i]; *c; c++)
            printf(*c == '"' || *c == '\\' || *c < ' ' || *c > '~' ? "\\x%02x" : "%c", *c);
        printf("\"\n");
    }
}

int main(int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "";
    if (strcmp(verb, "run") == 0 && argc > 5)
        return run_arguments(argc, argv);
    if (strcmp(verb, "samples") == 0 && argc == 3) {
        fuzz_write_samples(argv[2]);
    } else if (strcmp(verb, "tokens") == 0 && argc == 2) {
        print_tokens();
    } else if (strcmp(verb, "feed") == 0 && argc > 2) {
        for (int i = 2; i < argc; i++) {
            struct sample sample = read_sample(argv[i]);
            feed_exactly(sample.bytes, sample.count);
            free(sample.bytes);
        }
    } else {
        fprintf(stderr, "usage: %s run SECONDS SEED CURRENT SAMPLE... | feed FILE... | samples DIRECTORY | tokens\n",
                argv[0]);
        return 2;
    }
    return 0;
}
