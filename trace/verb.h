/* The verbs of the command line. The one part of trace/ that stands above policy/.
 *
 * Each gets the arguments behind its own name and returns the exit status: 0 done, 1 the answer is no (no plan), 2
 * bad usage or a bad file, told in one line on stderr. */
#pragma once
#include "policy/problem.h"
#include "trace/file.h"

int verb_report(int argc, char **argv);
int verb_plan(int argc, char **argv);
int verb_curve(int argc, char **argv);

/* One option that takes a value, or the file. */
struct verb_option {
    const char *name;   /* "--cap"; NULL ends the list */
    const char **value; /* where its value goes */
};

/* Fills *path and the options' values; false after one line on stderr. */
bool verb_arguments(const char *verb, int argc, char **argv, const char **path, const struct verb_option *options);

/* One line on stderr. Returns 2. */
int verb_refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Reads the file and takes its last iteration, with a line on stderr where the file was cut off behind it; NULL after
 * one line on stderr. */
const struct trace_recorded *verb_open(const char *path, struct trace *trace);

/* The planning problem of a recorded iteration; false if there is no memory. To be released. */
bool verb_problem(const struct trace *trace, const struct trace_recorded *recorded, struct policy_problem *out);
void verb_problem_release(struct policy_problem *problem);
