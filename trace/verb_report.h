/* The memory/time curve for the report's page, planned within limits. */
#pragma once
#include "policy/curve.h"
#include "trace/model.h"

/* Plans in a child process, which is ended when it takes longer or more memory than a report may. False with one line
 * in `why` if there is no curve. */
bool report_plan_curve(const struct model *model, struct curve *out, char *why, size_t why_bytes);
