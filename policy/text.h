/* The text form of a problem. One statement per line; `#` starts a comment.
 *
 *     reprise-problem 1                       first line: format and version
 *     fixed BYTES                             always resident
 *     frame BYTES                             unit of rounding (information only)
 *     bandwidth OUT IN                        swap bandwidth, bytes per nanosecond
 *     in BYTES [ATTRIBUTES]                   a version that is there at the start
 *     op NANOSECONDS [ATTRIBUTES] [: READ..]  the next operation; READ are version numbers
 *     out BYTES [ATTRIBUTES]                  a version made by the operation above
 *     end                                     last line: what has none was cut off
 *
 * Versions are numbered from 0 in the order of their lines. Attributes of a version: `kept`, `swappable`, `host` (may
 * start there), `droppable=POSITION` or `droppable=never`, `replaces=VERSION`. Attributes of an operation:
 * `workspace=BYTES`, `scratch=BYTES`, `until=POSITION`, `until=never`, `name=WORD`. An operation without
 * `until` may be replayed at any time.
 */
#pragma once
#include "policy/builder.h"
#include <stdio.h>

struct text_problem {
    struct problem_builder builder;
    char **names; /* NULL, or one per operation at least, NULL where it has none */
    uint32_t name_count;
};

/* False, with one line in `why`, "LINE: reason", where the input is malformed; nothing is
 * left allocated then. The result is a valid problem. */
bool text_read(FILE *input, struct text_problem *out, char *why, size_t why_bytes);
void text_release(struct text_problem *problem);
/* False when the output could not be written. names may be NULL. */
bool text_write(FILE *output, const struct policy_problem *problem, char *const *names);
