#include "policy/generate.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void make_chain(struct problem_builder *b, uint32_t size, uint64_t seed)
{
    (void)seed;
    generate_chain(b, size, 1000, 1000, 2000);
}

static void make_revolve(struct problem_builder *b, uint32_t size, uint64_t seed)
{
    (void)seed;
    generate_revolve_chain(b, size, 1000, 1000);
}

static void make_resnet(struct problem_builder *b, uint32_t size, uint64_t seed)
{
    (void)seed;
    generate_resnet(b, &(struct generate_resnet){.blocks = size,
                                                 .activation_bytes = 1 << 20,
                                                 .weight_bytes = 10000,
                                                 .convolution_ns = 1000000,
                                                 .pointwise_ns = 20000});
}

static void make_recurrent(struct problem_builder *b, uint32_t size, uint64_t seed)
{
    (void)seed;
    generate_recurrent(b, size, 65536, 300000);
}

/* Every fourth seed updates in place, every fifth holds operations that cannot be replayed, one in three has operations
 * of one result only. */
static void make_random(struct problem_builder *b, uint32_t size, uint64_t seed)
{
    generate_random(b, &(struct generate_random){.operations = size,
                                                 .inputs = 1 + size / 20,
                                                 .max_reads = 3,
                                                 .max_writes = seed % 3 ? 2 : 1,
                                                 .max_bytes = 20,
                                                 .max_ns = 30,
                                                 .per_mille_kept = 100,
                                                 .per_mille_in_place = seed % 4 ? 0 : 200,
                                                 .per_mille_fixed = seed % 5 ? 0 : 200,
                                                 .seed = seed});
    for (uint32_t o = 0; !b->has_failed && o < b->problem.operation_count; o++)
        b->problem.operations[o].nanoseconds += 5; /* so that the number of replays in a best plan is bounded */
}

/* Dense, with up to three results, some in place, some pinned or never run again, some kept. */
static void make_mixed(struct problem_builder *b, uint32_t size, uint64_t seed)
{
    generate_random(b, &(struct generate_random){.operations = size,
                                                 .inputs = 2,
                                                 .max_reads = 5,
                                                 .max_writes = 3,
                                                 .max_bytes = 20,
                                                 .max_ns = 30,
                                                 .per_mille_kept = 150,
                                                 .per_mille_in_place = 250,
                                                 .per_mille_fixed = 150,
                                                 .per_mille_pinned = 150,
                                                 .seed = seed});
}

static const struct {
    const char *kind;
    void (*make)(struct problem_builder *b, uint32_t size, uint64_t seed);
} kinds[] = {
    {"chain", make_chain},           {"random-chain", generate_random_chain}, {"revolve", make_revolve},
    {"resnet", make_resnet},         {"recurrent", make_recurrent},           {"random", make_random},
    {"training", generate_training}, {"varied-chain", generate_varied_chain}, {"mixed", make_mixed},
};

static bool parse_number(const char **at, uint64_t most, uint64_t *out)
{
    char *end;
    errno = 0;
    if (**at < '0' || **at > '9')
        return false;
    *out = strtoull(*at, &end, 10);
    *at = end;
    return !errno && *out <= most;
}

bool generate_is_name(const char *name)
{
    const char *colon = strchr(name, ':');
    for (size_t k = 0; colon && k < sizeof kinds / sizeof *kinds; k++)
        if (strlen(kinds[k].kind) == (size_t)(colon - name) &&
            strncmp(kinds[k].kind, name, (size_t)(colon - name)) == 0)
            return true;
    return false;
}

bool generate_named(struct problem_builder *b, const char *name, char *why, size_t why_bytes)
{
    const char *colon = strchr(name, ':'), *rest = colon ? colon + 1 : "";
    uint64_t size, seed = 1;
    if (!generate_is_name(name)) {
        snprintf(why, why_bytes,
                 "%.60s: KIND:SIZE[:SEED] is expected, KIND one of chain, random-chain, varied-chain, revolve, "
                 "resnet, recurrent, random, mixed, training",
                 name);
        return false;
    }
    if (!parse_number(&rest, 100000000, &size) || !size ||
        (*rest == ':' && (rest++, !parse_number(&rest, UINT64_MAX, &seed))) || *rest) {
        snprintf(why, why_bytes, "%.60s: SIZE is a number from 1, SEED one from 0", name);
        return false;
    }
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (strncmp(kinds[k].kind, name, strlen(kinds[k].kind)) == 0 && name[strlen(kinds[k].kind)] == ':')
            kinds[k].make(b, (uint32_t)size, seed);
    if (b->has_failed)
        snprintf(why, why_bytes, "%.60s: out of memory", name);
    return !b->has_failed;
}
