#include "policy/builder.h"
#include <stdlib.h>
#include <string.h>

static bool grow(struct problem_builder *b, void **array, size_t element, uint32_t count, uint32_t *capacity)
{
    if (b->has_failed || count < *capacity)
        return !b->has_failed;
    uint32_t larger = *capacity ? *capacity * 2 : 64;
    void *grown = larger > *capacity ? realloc(*array, element * larger) : NULL;
    if (!grown) {
        b->has_failed = true;
        return false;
    }
    *array = grown;
    *capacity = larger;
    return true;
}

static uint32_t add_version(struct problem_builder *b, uint64_t bytes, uint32_t producer, uint32_t replaces)
{
    struct policy_problem *p = &b->problem;
    if (!grow(b, (void **)&p->versions, sizeof *p->versions, p->version_count, &b->version_capacity))
        return 0;
    p->versions[p->version_count] = (struct policy_version){.bytes = bytes, .producer = producer, .replaces = replaces};
    return p->version_count++;
}

uint32_t builder_input(struct problem_builder *b, uint64_t bytes)
{
    return add_version(b, bytes, POLICY_NONE, POLICY_NONE);
}

uint32_t builder_operation(struct problem_builder *b, uint64_t nanoseconds)
{
    struct policy_problem *p = &b->problem;
    if (!grow(b, (void **)&p->operations, sizeof *p->operations, p->operation_count, &b->operation_capacity))
        return 0;
    p->operations[p->operation_count] = (struct policy_operation){.nanoseconds = nanoseconds,
                                                                  .first_read = p->read_count,
                                                                  .first_write = p->write_count,
                                                                  .replayable_until = POLICY_NONE};
    return p->operation_count++;
}

void builder_read(struct problem_builder *b, uint32_t version)
{
    struct policy_problem *p = &b->problem;
    if (!p->operation_count || !grow(b, (void **)&p->reads, sizeof *p->reads, p->read_count, &b->read_capacity))
        return;
    struct policy_operation *op = &p->operations[p->operation_count - 1];
    for (uint32_t k = 0; k < op->read_count; k++)
        if (p->reads[op->first_read + k] == version)
            return;
    p->reads[p->read_count++] = version;
    op->read_count++;
}

static uint32_t write_version(struct problem_builder *b, uint64_t bytes, uint32_t replaces)
{
    struct policy_problem *p = &b->problem;
    if (!p->operation_count || !grow(b, (void **)&p->writes, sizeof *p->writes, p->write_count, &b->write_capacity))
        return 0;
    uint32_t version = add_version(b, bytes, p->operation_count - 1, replaces);
    if (b->has_failed)
        return 0;
    p->writes[p->write_count++] = version;
    p->operations[p->operation_count - 1].write_count++;
    return version;
}

uint32_t builder_write(struct problem_builder *b, uint64_t bytes)
{
    return write_version(b, bytes, POLICY_NONE);
}

uint32_t builder_replace(struct problem_builder *b, uint32_t version)
{
    builder_read(b, version);
    return b->has_failed ? 0 : write_version(b, b->problem.versions[version].bytes, version);
}

void builder_release(struct problem_builder *b)
{
    free(b->problem.operations);
    free(b->problem.versions);
    free(b->problem.reads);
    free(b->problem.writes);
    *b = (struct problem_builder){0};
}
