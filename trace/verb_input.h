/* What `plan` and `curve` read: the last analysed iteration of a trace, or a problem in its text form
 * (policy/text.h). Which of the two a file is, its first bytes say. */
#pragma once
#include "policy/text.h"
#include "trace/file.h"

/* Operations with one name that were submitted from one place. */
struct verb_group {
    const char *name; /* as a reader knows it */
    const char *site; /* the calls that led to it, innermost first; NULL = not known */
};

struct verb_input {
    const struct policy_problem *problem;
    uint64_t demand_peak_bytes; /* what the program held at most; 0 = not known */
    struct verb_group *groups;
    uint32_t *group_of; /* per operation */
    uint32_t group_count;
    char heading[160]; /* one line: what it is */

    /* Where the above is kept. */
    struct trace trace;
    struct policy_problem recorded;
    struct text_problem text;
    char *names, *sites;
};

/* "-" is standard input. False after one line on stderr that names the file (and the line of a text); nothing is left
 * open then. */
bool verb_input_open(const char *path, struct verb_input *out);
void verb_input_close(struct verb_input *input);
