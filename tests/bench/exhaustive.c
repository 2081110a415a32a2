/* The least time that any legal plan without swapping adds, by exhaustive search; for small problems.
 *
 *     exhaustive PROBLEM CAP...
 *
 * Nothing is shared with the planner: the text form is read here, and the moves are those of policy/problem.h.
 * One line per cap: CAP and the least added nanoseconds, or "infeasible", or "unknown" where the search grew too large.
 *
 * Shortest paths over (operations run, set of versions present), cheapest first. Dropping is free, so a state with more
 * versions present can do all that one with fewer can: versions are dropped only where an execution does not fit
 * otherwise, and no more of them than must be. All such sets are tried. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 40, NOTHING = -1 };

static const size_t MOST_STATES = 12000000;

struct operation {
    uint64_t nanoseconds, workspace, scratch;
    int reads[MOST], read_count, writes[MOST], write_count;
    long until;
};

struct version {
    uint64_t bytes;
    int producer, replaces;
    bool is_kept;
    long droppable;
};

static struct operation operations[MOST];
static struct version versions[MOST];
static int operation_count, version_count;
static uint64_t fixed, cap;

static void fail(const char *what)
{
    fprintf(stderr, "exhaustive: %s\n", what);
    exit(2);
}

static void read_operation(char *rest)
{
    struct operation *o = &operations[operation_count++];
    bool is_list = false;
    *o = (struct operation){.nanoseconds = strtoull(strtok(rest, " \n"), NULL, 10), .until = 1L << 40};
    for (char *word; (word = strtok(NULL, " \n"));) {
        if (strcmp(word, ":") == 0)
            is_list = true;
        else if (is_list && o->read_count < MOST)
            o->reads[o->read_count++] = atoi(word);
        else if (strncmp(word, "workspace=", 10) == 0)
            o->workspace = strtoull(word + 10, NULL, 10);
        else if (strncmp(word, "scratch=", 8) == 0)
            o->scratch = strtoull(word + 8, NULL, 10);
        else if (strncmp(word, "until=", 6) == 0)
            o->until = strcmp(word + 6, "never") == 0 ? 0 : atol(word + 6);
        else if (strncmp(word, "name=", 5) != 0)
            fail(word);
    }
}

static void read_version(char *rest, bool is_input)
{
    struct version *v = &versions[version_count];
    *v = (struct version){.bytes = strtoull(strtok(rest, " \n"), NULL, 10),
                          .producer = is_input ? NOTHING : operation_count - 1,
                          .replaces = NOTHING};
    for (char *word; (word = strtok(NULL, " \n"));) {
        if (strcmp(word, "kept") == 0)
            v->is_kept = true;
        else if (strncmp(word, "replaces=", 9) == 0)
            v->replaces = atoi(word + 9);
        else if (strncmp(word, "droppable=", 10) == 0)
            v->droppable = strcmp(word + 10, "never") == 0 ? 1L << 40 : atol(word + 10);
        else if (strcmp(word, "swappable") != 0)
            fail(word);
    }
    if (!is_input) {
        struct operation *o = &operations[operation_count - 1];
        o->writes[o->write_count++] = version_count;
    }
    version_count++;
}

static void read_problem(const char *path)
{
    FILE *file = fopen(path, "r");
    char line[4096];
    if (!file)
        fail(path);
    while (fgets(line, sizeof line, file)) {
        if (operation_count == MOST || version_count == MOST)
            fail("too large");
        if (strncmp(line, "op ", 3) == 0)
            read_operation(line + 3);
        else if (strncmp(line, "in ", 3) == 0 || strncmp(line, "out ", 4) == 0)
            read_version(strchr(line, ' ') + 1, line[0] == 'i');
        else if (strncmp(line, "fixed ", 6) == 0)
            fixed = strtoull(line + 6, NULL, 10);
        else if (!strchr("#\nrfbe", line[0]))
            fail(line);
    }
    fclose(file);
}

/* A state: bits of the versions present, the number of operations run above them. */
static const uint64_t POSITION = 1ull << MOST;

struct found {
    uint64_t state, cost;
};

static struct found *table; /* open addressing; state UINT64_MAX: empty */
static size_t table_size, table_used;

static struct found *look_up(uint64_t state)
{
    size_t at = (size_t)((state * 0x9e3779b97f4a7c15ull) >> 20) & (table_size - 1);
    while (table[at].state != UINT64_MAX && table[at].state != state)
        at = (at + 1) & (table_size - 1);
    return &table[at];
}

static struct found *heap;
static size_t heap_count, heap_size;

static void grow_table(void)
{
    struct found *old = table;
    size_t old_size = table_size;
    table_size = old_size ? 2 * old_size : 1 << 16;
    table = malloc(table_size * sizeof *table);
    if (!table)
        fail("out of memory");
    memset(table, 0xff, table_size * sizeof *table);
    for (size_t k = 0; k < old_size; k++)
        if (old[k].state != UINT64_MAX)
            *look_up(old[k].state) = old[k];
    free(old);
}

static void push(uint64_t state, uint64_t cost)
{
    if (2 * table_used >= table_size)
        grow_table();
    struct found *known = look_up(state);
    if (known->state == state && known->cost <= cost)
        return;
    table_used += known->state != state;
    *known = (struct found){state, cost};
    if (heap_count == heap_size) {
        heap_size = heap_size ? 2 * heap_size : 1 << 16;
        heap = realloc(heap, heap_size * sizeof *heap);
        if (!heap)
            fail("out of memory");
    }
    size_t k = heap_count++;
    for (; k && heap[(k - 1) / 2].cost > cost; k = (k - 1) / 2)
        heap[k] = heap[(k - 1) / 2];
    heap[k] = (struct found){state, cost};
}

static struct found pop(void)
{
    struct found least = heap[0], last = heap[--heap_count];
    size_t k = 0;
    for (size_t child; (child = 2 * k + 1) < heap_count; k = child) {
        child += child + 1 < heap_count && heap[child + 1].cost < heap[child].cost;
        if (heap[child].cost >= last.cost)
            break;
        heap[k] = heap[child];
    }
    heap[k] = last;
    return least;
}

static bool has(uint64_t set, int v)
{
    return set >> v & 1;
}

static uint64_t bytes_of(uint64_t set)
{
    uint64_t bytes = fixed;
    for (int v = 0; v < version_count; v++)
        bytes += has(set, v) ? versions[v].bytes : 0;
    return bytes;
}

/* An execution that is wanted, and the sets to drop before it. */
struct wish {
    int operation, position;
    bool is_again;
    uint64_t cost;
};

/* Runs it with `set` present; false where it does not fit or something is missing. */
static bool execute(const struct wish *w, uint64_t set, uint64_t *after)
{
    const struct operation *o = &operations[w->operation];
    uint64_t bytes = bytes_of(set) + o->workspace + (w->is_again ? o->scratch : 0);
    *after = set;
    for (int k = 0; k < o->read_count; k++)
        if (!has(set, o->reads[k]))
            return false;
    for (int k = 0; k < o->write_count; k++) {
        int v = o->writes[k], old = versions[v].replaces;
        bool is_there = has(set, v);
        if (!is_there && old != NOTHING && !has(set, old))
            return false;
        if (is_there || old == NOTHING)
            bytes += versions[v].bytes;
        if (!is_there && old != NOTHING)
            *after &= ~(1ull << old);
        *after |= 1ull << v;
    }
    return bytes <= cap;
}

/* Tries all least sets of drops among versions from `first` on. */
static void try_drops(const struct wish *w, uint64_t set, int first, uint64_t dropped)
{
    uint64_t after, other;
    if (execute(w, set, &after)) {
        for (int v = 0; v < version_count; v++)
            if (has(dropped, v) && execute(w, set | 1ull << v, &other))
                return; /* one drop too many: another set has it without */
        push(after | (uint64_t)(w->position + !w->is_again) * POSITION, w->cost);
        return;
    }
    for (int v = first; v < version_count; v++)
        if (has(set, v) && versions[v].droppable <= w->position)
            try_drops(w, set & ~(1ull << v), v + 1, dropped | 1ull << v);
}

static void expand(struct found from)
{
    uint64_t set = from.state & (POSITION - 1);
    int position = (int)(from.state / POSITION);
    if (position < operation_count)
        try_drops(&(struct wish){position, position, false, from.cost}, set, 0, 0);
    for (int o = 0; o < position; o++) {
        bool is_useful = false;
        for (int k = 0; k < operations[o].write_count; k++)
            is_useful |= !has(set, operations[o].writes[k]);
        if (is_useful && position <= operations[o].until)
            try_drops(&(struct wish){o, position, true, from.cost + operations[o].nanoseconds}, set, 0, 0);
    }
}

static bool is_end(uint64_t state)
{
    for (int v = 0; v < version_count; v++)
        if (versions[v].is_kept && !has(state, v))
            return false;
    return state / POSITION == (uint64_t)operation_count;
}

static void search(void)
{
    uint64_t start = 0;
    for (int v = 0; v < version_count; v++)
        start |= versions[v].producer == NOTHING ? 1ull << v : 0;
    free(table);
    table = NULL;
    heap_count = table_used = table_size = 0;
    if (bytes_of(start) <= cap)
        push(start, 0);
    while (heap_count && table_used < MOST_STATES) {
        struct found least = pop();
        if (look_up(least.state)->cost < least.cost)
            continue;
        if (is_end(least.state)) {
            printf("%" PRIu64 " %" PRIu64 "\n", cap, least.cost);
            return;
        }
        expand(least);
    }
    printf("%" PRIu64 " %s\n", cap, heap_count ? "unknown" : "infeasible");
}

int main(int argc, char **argv)
{
    if (argc < 3)
        fail("usage: exhaustive PROBLEM CAP...");
    read_problem(argv[1]);
    for (int k = 2; k < argc; k++) {
        cap = strtoull(argv[k], NULL, 10);
        search();
        fflush(stdout);
    }
    return 0;
}
