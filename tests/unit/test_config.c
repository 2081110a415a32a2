/* links: shim/config.c trace/size.c shim/say.c */
#include "shim/config.h"
#include "trace/size.h"
#include "shim/say.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void test_sizes(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {
        {"1", 1},
        {"4096", 4096},
        {"17B", 17},
        {"1KB", 1000},
        {"1KiB", 1024},
        {"2K", 2048},
        {"500MiB", 500ull << 20},
        {"1.5GiB", 3ull << 29},
        {"0.5MiB", 1u << 19},
        {"1.25KB", 1250},
        {"7GiB", 7ull << 30},
        {"7GB", 7000000000ull},
        {"3TiB", 3ull << 40},
        {"0.000000001GB", 1},
        {"8388607TiB", 8388607ull << 40},
    };
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        uint64_t bytes = 0;
        assert_true(size_parse(good[i].text, &bytes));
        assert_int_equal(bytes, good[i].bytes);
    }
}

static void test_malformed_sizes(void **state)
{
    static const char *const bad[] = {
        "",       "GiB",   "-1",    "+1",     " 1",         "1 ",    "1 GiB",
        "1.",     ".5GiB", "1.5.5", "1gib",   "1GIB",       "0",     "0GiB",
        "0.0001", "1e9",   "0x10",  "1,5GiB", "8388608TiB", "1KiBx", "99999999999999999999",
        "NaN"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint64_t bytes = 77;
        assert_false(size_parse(bad[i], &bytes));
        assert_int_equal(bytes, 77);
    }
}

static bool parse(const char *variable, struct config *config)
{
    static char copy[128]; /* outlives what is read from it */
    char *environment[] = {"PATH=/bin", copy, NULL};
    const char *name = NULL, *why = NULL;
    say_format(copy, sizeof copy, "%s", variable);
    bool is_good = config_parse(environment, config, &name, &why);
    if (!is_good) {
        assert_non_null(name);
        assert_non_null(why);
        assert_memory_equal(name, variable, strlen(name));
        assert_int_equal(variable[strlen(name)], '=');
    }
    return is_good;
}

static void test_defaults(void **state)
{
    struct config config;
    (void)state;
    assert_true(parse("HOME=/", &config));
    assert_int_equal(config.cap_bytes, 0);
    assert_true(config.may_swap);
    assert_false(config.is_strict);
    assert_int_equal(config.verify_mode, VERIFY_ALWAYS);
    assert_null(config.trace_path);
    assert_null(config.stats_path);
    assert_null(config.marker);
    assert_int_equal(config.log_level, SAY_WARNING);
}

static void test_variables(void **state)
{
    struct config config;
    (void)state;
    assert_true(parse("REPRISE_CAP=3MiB", &config));
    assert_int_equal(config.cap_bytes, 3u << 20);
    assert_true(parse("REPRISE_SWAP=0", &config) && !config.may_swap);
    assert_true(parse("REPRISE_STRICT=1", &config) && config.is_strict);
    assert_true(parse("REPRISE_VERIFY=sample", &config) && config.verify_mode == VERIFY_SAMPLE);
    assert_true(parse("REPRISE_LOG=debug", &config) && config.log_level == SAY_DEBUG);
    assert_true(parse("REPRISE_LOG=quiet", &config) && config.log_level == SAY_QUIET);
    assert_true(parse("REPRISE_SEED=18446744073709551615", &config) && config.seed == UINT64_MAX);
    assert_true(parse("REPRISE_STATS=/tmp/a=b", &config));
    assert_string_equal(config.stats_path, "/tmp/a=b");
    assert_true(parse("REPRISE_MARKER=step", &config));
    assert_string_equal(config.marker, "step");
}

static void test_malformed_variables(void **state)
{
    static const char *const bad[] = {"REPRISE_CAP=",    "REPRISE_CAP=lots",      "REPRISE_SWAP=",
                                      "REPRISE_SWAP=2",  "REPRISE_SWAP=01",       "REPRISE_STRICT=yes",
                                      "REPRISE_VERIFY=", "REPRISE_VERIFY=Always", "REPRISE_LOG=verbose",
                                      "REPRISE_TRACE=",  "REPRISE_STATS=",        "REPRISE_MARKER=",
                                      "REPRISE_SEED=",   "REPRISE_SEED=-1",       "REPRISE_SEED=18446744073709551616"};
    struct config config;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(parse(bad[i], &config));
}

/* Names that only begin like ours, or that a launcher uses, are not ours to judge. */
static void test_other_names(void **state)
{
    struct config config;
    (void)state;
    assert_true(parse("REPRISE_CAPACITY=x", &config) && config.cap_bytes == 0);
    assert_true(parse("REPRISE_LIBRARY=/x", &config));
    assert_true(parse("REPRISE_=x", &config));
    assert_true(parse("REPRISE_A_NAME_THAT_IS_LONGER_THAN_ANY_OF_OURS=x", &config));
    assert_true(parse("XREPRISE_CAP=x", &config));
    assert_true(parse("REPRISE_CAP", &config));
}

static void test_ranks(void **state)
{
    static const struct {
        const char *environment[5];
        uint32_t rank;
    } cases[] = {
        {{NULL}, UINT32_MAX},
        {{"RANK=3", NULL}, 3},
        {{"RANK=3", "WORLD_SIZE=8", NULL}, 3},
        {{"RANK=0", "WORLD_SIZE=1", NULL}, UINT32_MAX},
        {{"LOCAL_RANK=1", "RANK=5", NULL}, 5},
        {{"SLURM_PROCID=0", "SLURM_NTASKS=1", "OMPI_COMM_WORLD_RANK=2", NULL}, 2},
        {{"SLURM_PROCID=7", NULL}, 7},
        {{"PMI_RANK=x", "MV2_COMM_WORLD_RANK=1", NULL}, 1},
        {{"RANK=", NULL}, UINT32_MAX},
        {{"RANK=4294967295", NULL}, UINT32_MAX},
        {{"RANKS=3", "XRANK=4", NULL}, UINT32_MAX},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct config config;
        const char *name, *why;
        assert_true(config_parse((char *const *)cases[i].environment, &config, &name, &why));
        assert_int_equal(config.rank, cases[i].rank);
    }
}

static void test_rings(void **state)
{
    struct config config;
    (void)state;
    assert_true(parse("REPRISE_TRACE_RING=4096", &config));
    assert_int_equal(config.trace_ring_bytes, 4096);
    assert_true(parse("REPRISE_TRACE_RING=5KB", &config));
    assert_int_equal(config.trace_ring_bytes, 8192);
    assert_true(parse("REPRISE_TRACE_RING=1GiB", &config));
    assert_int_equal(config.trace_ring_bytes, 1u << 30);
    assert_false(parse("REPRISE_TRACE_RING=4095", &config));
    assert_false(parse("REPRISE_TRACE_RING=2GiB", &config));
    assert_false(parse("REPRISE_TRACE_RING=many", &config));
    assert_true(parse("REPRISE_TRACE_NEW=1", &config));
    assert_true(config.is_trace_new);
    assert_false(parse("REPRISE_TRACE_NEW=yes", &config));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_malformed_sizes),
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_rings),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_variables),
        cmocka_unit_test(test_malformed_variables),
        cmocka_unit_test(test_other_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
