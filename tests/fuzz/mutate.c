#include "tests/fuzz/mutate.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 24;
}

static size_t token_count(const struct mutate_target *target)
{
    size_t count = 0;
    while (target->tokens && target->tokens[count])
        count++;
    return count;
}

/* One edit of bytes[0 .. count), room for `most`; returns the new count. */
static size_t edit(const struct mutate_target *target, unsigned char *bytes, size_t count, size_t most,
                   uint64_t *random)
{
    size_t at = count ? next_random(random) % count : 0, tokens = token_count(target);
    switch (next_random(random) % 5) {
    case 0:
        if (count)
            bytes[at] = (unsigned char)next_random(random);
        return count;
    case 1:
        if (count)
            bytes[at] ^= (unsigned char)(1 << next_random(random) % 8);
        return count;
    case 2: { /* cut a piece out */
        size_t length = next_random(random) % 200;
        if (at + length > count)
            return at;
        memmove(bytes + at, bytes + at + length, count - at - length);
        return count - length;
    }
    case 3: { /* copy a piece from elsewhere over this one */
        size_t from = count ? next_random(random) % count : 0, length = next_random(random) % 64;
        if (from + length <= count && at + length <= count)
            memmove(bytes + at, bytes + from, length);
        return count;
    }
    default: {
        const char *token = tokens ? target->tokens[next_random(random) % tokens] : "\xff\xff\xff\xff";
        size_t length = strlen(token);
        if (count + length > most)
            return count;
        memmove(bytes + at + length, bytes + at, count - at);
        memcpy(bytes + at, token, length);
        return count + length;
    }
    }
}

int mutate_run(int argc, char **argv, const struct mutate_target *target)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s SECONDS [SEED]\n", argv[0]);
        return 2;
    }
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)time(NULL), rounds = 0;
    time_t end = time(NULL) + strtol(argv[1], NULL, 10);
    size_t most = 2 * target->sample_bytes + 4096;
    unsigned char *work = malloc(most);
    if (!work)
        return 2;
    printf("seed %llu\n", (unsigned long long)seed);
    fflush(stdout);
    for (uint64_t random = seed; time(NULL) < end; rounds++) {
        size_t count = target->sample_bytes;
        memcpy(work, target->sample, count);
        for (uint64_t edits = 1 + next_random(&random) % 12; edits > 0; edits--)
            count = edit(target, work, count, most, &random);
        unsigned char *exact = malloc(count ? count : 1); /* one byte too many is seen */
        if (!exact)
            return 2;
        memcpy(exact, work, count);
        target->feed(exact, count);
        free(exact);
    }
    free(work);
    printf("%llu inputs\n", (unsigned long long)rounds);
    return 0;
}

unsigned char *mutate_read(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    unsigned char *content = malloc(1 << 22);
    if (!file || !content) {
        fprintf(stderr, "%s: cannot be read\n", path);
        exit(2);
    }
    *bytes = fread(content, 1, 1 << 22, file);
    fclose(file);
    return content;
}
