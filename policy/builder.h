/* Builds a problem operation by operation. The builder owns the problem's arrays.
 *
 *     builder_operation(&b, nanoseconds);           opens operation i
 *     builder_read(&b, version); ...                its reads
 *     version = builder_write(&b, bytes); ...       its new versions
 *
 * Reads and writes belong to the operation opened last. Operations are replayable for ever and versions
 * droppable at any time until something else is set in the problem. After a failed allocation all calls do
 * nothing and has_failed is true.
 */
#pragma once
#include "policy/problem.h"

struct problem_builder {
    struct policy_problem problem;
    uint32_t operation_capacity, version_capacity, read_capacity, write_capacity;
    bool has_failed;
};

/* A version that is there when the iteration starts. */
uint32_t builder_input(struct problem_builder *b, uint64_t bytes);
uint32_t builder_operation(struct problem_builder *b, uint64_t nanoseconds);
void builder_read(struct problem_builder *b, uint32_t version);
uint32_t builder_write(struct problem_builder *b, uint64_t bytes);
/* The operation opened last reads `version` and turns it into a new one in place. */
uint32_t builder_replace(struct problem_builder *b, uint32_t version);
void builder_release(struct problem_builder *b);
