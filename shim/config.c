#include "shim/config.h"

#include "shim/say.h"
#include "trace/size.h"

#include <string.h>
#include <unistd.h>

#define DEFAULTS                                                                                                       \
    {                                                                                                                  \
        .may_swap = true, .seed = 1, .log_level = SAY_WARNING, .trace_ring_bytes = 8u << 20, .rank = UINT32_MAX        \
    }

static struct config current = DEFAULTS;

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool parse_flag(const char *text, bool *flag)
{
    if ((text[0] != '0' && text[0] != '1') || text[1] != 0)
        return false;
    *flag = text[0] == '1';
    return true;
}

static bool parse_number(const char *text, uint64_t *number)
{
    uint64_t value = 0;
    if (*text == 0)
        return false;
    for (; is_digit(*text); text++)
        if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
            return false;
    *number = value;
    return *text == 0;
}

static bool parse_word(const char *text, const char *const *words, int *index)
{
    for (int i = 0; words[i]; i++)
        if (strcmp(words[i], text) == 0) {
            *index = i;
            return true;
        }
    return false;
}

static bool parse_path(const char *text, const char **path)
{
    *path = text;
    return *text != 0;
}

static bool parse_ring(const char *text, uint64_t *bytes)
{
    uint64_t wanted;
    if (!size_parse(text, &wanted) || wanted < 4096 || wanted > 1u << 30)
        return false;
    for (*bytes = 4096; *bytes < wanted; *bytes *= 2)
        ;
    return true;
}

/* NULL: it is not set. */
static const char *value_of(char *const *environment, const char *name)
{
    size_t length = strlen(name);
    for (; environment && *environment; environment++)
        if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
            return *environment + length + 1;
    return NULL;
}

static uint32_t find_rank(char *const *environment)
{
    static const struct {
        const char *rank, *size;
    } names[] = {{"RANK", "WORLD_SIZE"},
                 {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                 {"PMIX_RANK", "PMIX_SIZE"},
                 {"PMI_RANK", "PMI_SIZE"},
                 {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
                 {"SLURM_PROCID", "SLURM_NTASKS"},
                 {"LOCAL_RANK", "LOCAL_WORLD_SIZE"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *rank = value_of(environment, names[i].rank), *size = value_of(environment, names[i].size);
        uint64_t number;
        if (rank && parse_number(rank, &number) && number < UINT32_MAX)
            return size && strcmp(size, "1") == 0 ? UINT32_MAX : (uint32_t)number;
    }
    return UINT32_MAX;
}

/* One variable: false if it is malformed, with *why set. */
static bool parse_variable(struct config *config, const char *name, const char *value, const char **why)
{
    static const char *const levels[] = {"quiet", "error", "warning", "info", "debug", NULL};
    static const char *const modes[] = {"always", "sample", NULL};
    int word = 0;
    bool is_good = true;
    if (strcmp(name, "CAP") == 0) {
        *why = "a size such as 7GiB, 500MiB or 1.5GB";
        is_good = size_parse(value, &config->cap_bytes);
    } else if (strcmp(name, "SWAP") == 0) {
        *why = "0 or 1";
        is_good = parse_flag(value, &config->may_swap);
    } else if (strcmp(name, "STRICT") == 0) {
        *why = "0 or 1";
        is_good = parse_flag(value, &config->is_strict);
    } else if (strcmp(name, "VERIFY") == 0) {
        *why = "always or sample";
        is_good = parse_word(value, modes, &word);
        config->verify_mode = (enum verify_mode)word;
    } else if (strcmp(name, "LOG") == 0) {
        *why = "quiet, error, warning, info or debug";
        is_good = parse_word(value, levels, &word);
        config->log_level = is_good ? word : config->log_level;
    } else if (strcmp(name, "TRACE") == 0) {
        *why = "the name of a file";
        is_good = parse_path(value, &config->trace_path);
    } else if (strcmp(name, "TRACE_RING") == 0) {
        *why = "a size from 4KiB to 1GiB";
        is_good = parse_ring(value, &config->trace_ring_bytes);
    } else if (strcmp(name, "TRACE_NEW") == 0) {
        *why = "0 or 1";
        is_good = parse_flag(value, &config->is_trace_new);
    } else if (strcmp(name, "STATS") == 0) {
        *why = "the name of a file";
        is_good = parse_path(value, &config->stats_path);
    } else if (strcmp(name, "MARKER") == 0) {
        *why = "the name of a kernel";
        is_good = parse_path(value, &config->marker);
    } else if (strcmp(name, "SEED") == 0) {
        *why = "a whole number";
        is_good = parse_number(value, &config->seed);
    }
    return is_good;
}

bool config_parse(char *const *environment, struct config *out, const char **name, const char **why)
{
    static const char prefix[] = "REPRISE_";
    static char at_fault[32];
    *out = (struct config)DEFAULTS;
    out->rank = find_rank(environment);
    for (; environment && *environment; environment++) {
        const char *equals = strchr(*environment, '=');
        if (strncmp(*environment, prefix, sizeof prefix - 1) != 0 || equals == NULL)
            continue;
        char variable[24] = {0};
        size_t length = (size_t)(equals - *environment) - (sizeof prefix - 1);
        if (length >= sizeof variable)
            continue;
        memcpy(variable, *environment + sizeof prefix - 1, length);
        if (!parse_variable(out, variable, equals + 1, why)) {
            say_format(at_fault, sizeof at_fault, "%s%s", prefix, variable);
            *name = at_fault;
            return false;
        }
    }
    return true;
}

const struct config *config(void)
{
    return &current;
}

/* Reads the environment only: no driver call belongs here. */
__attribute__((constructor)) static void read_environment(void)
{
    const char *name = NULL, *why = NULL;
    struct config parsed;
    if (!config_parse(environ, &parsed, &name, &why)) {
        const char *value = value_of(environ, name);
        current.log_level = SAY_ERROR;
        say(SAY_ERROR, "%s=%s is malformed: it should be %s", name, value ? value : "", why);
        _exit(2);
    }
    current = parsed;
}
