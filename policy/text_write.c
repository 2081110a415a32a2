/* The writer's half of the text form: versions are renumbered in the order of their lines. */
#include "policy/text.h"
#include <inttypes.h>
#include <stdlib.h>

static void write_version(FILE *f, const struct policy_version *v, const char *word, const uint32_t *number)
{
    fprintf(f, "%s %" PRIu64 "%s%s", word, v->bytes, v->is_kept ? " kept" : "", v->is_swappable ? " swappable" : "");
    if (v->may_start_on_host)
        fputs(" host", f);
    if (v->droppable_from == POLICY_NONE)
        fputs(" droppable=never", f);
    else if (v->droppable_from)
        fprintf(f, " droppable=%" PRIu32, v->droppable_from);
    if (v->replaces != POLICY_NONE)
        fprintf(f, " replaces=%" PRIu32, number[v->replaces]);
    fputc('\n', f);
}

static void write_operation(FILE *f, const struct policy_problem *p, uint32_t o, const char *name,
                            const uint32_t *number)
{
    const struct policy_operation *op = &p->operations[o];
    fprintf(f, "op %" PRIu64, op->nanoseconds);
    if (op->workspace_bytes)
        fprintf(f, " workspace=%" PRIu64, op->workspace_bytes);
    if (op->scratch_bytes)
        fprintf(f, " scratch=%" PRIu64, op->scratch_bytes);
    if (!op->replayable_until)
        fputs(" until=never", f);
    else if (op->replayable_until < p->operation_count)
        fprintf(f, " until=%" PRIu32, op->replayable_until);
    if (name)
        fprintf(f, " name=%s", name);
    if (op->read_count)
        fputs(" :", f);
    for (uint32_t k = 0; k < op->read_count; k++)
        fprintf(f, " %" PRIu32, number[p->reads[op->first_read + k]]);
    fputc('\n', f);
}

bool text_write(FILE *f, const struct policy_problem *p, char *const *names)
{
    uint32_t *number = malloc(sizeof *number * ((size_t)p->version_count + 1)), count = 0;
    if (!number)
        return false;
    fprintf(f, "reprise-problem 1\nfixed %" PRIu64 "\nframe %" PRIu64 "\nbandwidth %.17g %.17g\n", p->fixed_bytes,
            p->frame_bytes, p->out_bytes_per_ns, p->in_bytes_per_ns);
    for (uint32_t v = 0; v < p->version_count; v++) {
        if (p->versions[v].producer != POLICY_NONE)
            continue;
        number[v] = count++;
        write_version(f, &p->versions[v], "in", number);
    }
    for (uint32_t o = 0; o < p->operation_count; o++) {
        write_operation(f, p, o, names ? names[o] : NULL, number);
        for (uint32_t k = 0; k < p->operations[o].write_count; k++) {
            uint32_t v = p->writes[p->operations[o].first_write + k];
            number[v] = count++;
            write_version(f, &p->versions[v], "out", number);
        }
    }
    fputs("end\n", f);
    free(number);
    return !ferror(f);
}
