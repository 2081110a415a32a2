/* The least time that any plan without swapping adds, by exhaustive search; for tests on small problems. */
#pragma once
#include "policy/problem.h"

#define EXHAUSTIVE_NONE UINT64_MAX

/* At most 16 versions. EXHAUSTIVE_NONE where no plan holds the cap. */
uint64_t exhaustive_added_ns(const struct policy_problem *problem, uint64_t cap);
