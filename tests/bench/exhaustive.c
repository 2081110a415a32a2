/* The least time that any legal plan without swapping adds, by exhaustive search; for small problems.
 *
 *     exhaustive [--plain] PROBLEM CAP...
 *
 * Nothing is shared with the planner: the text form is read here, and the moves are those of policy/problem.h.
 * One line per cap: CAP and the least added nanoseconds, or "infeasible", or "unknown" where the search grew too large.
 *
 * Shortest paths over states (p, S): p operations have run, the versions in S are present. An edge is an execution, of
 * operation p or of an earlier one again, with some drops just before it; replays cost their time, all else nothing.
 * With --plain that is all: each version may be dropped at each place, least cost goes first. Otherwise left out is
 * only what cannot make a difference (scripts/bench_plan compares the two where both get through):
 *
 * 1. More is never worse. Let S contain T, and let all of S - T be droppable at p. Whatever can be done from (p, T) can
 *    be done from (p, S) for the same cost: drop S - T first. Droppable now is droppable later.
 *
 * 2. Drops are made for room only: before an execution e, least sets of drops with which it fits, all of them. For take
 *    a plan that drops v before e although e fits with v there as well, and leave that drop out. If e does not make v,
 *    what is present after e has grown by v; by 1 that is no worse. If e makes v, v is there after e in both cases; the
 *    only difference is a version `old` that v replaces in place: it is turned into v if v was dropped, and stays
 *    otherwise. It may be dropped then, unless it is not droppable yet. So for each such v (made in place by e, there,
 *    with an undroppable `old` that is there) both ways are tried.
 *
 * 3. Useful at p is what an operation from p on reads or replaces, and what is kept; and, for every operation before p
 *    that may still be replayed and makes something useful, or replaces what is undroppable at p: what it reads, what
 *    it makes in place, and what that replaces. What is not useful at p is not useful later. It is dropped as soon as
 *    it may be, and operations are not replayed that neither make something useful that is absent nor replace something
 *    undroppable: strike such replays from a plan, and drop the useless versions at once. The executions that remain
 *    find all they read; with less present, they still fit.
 *
 * 4. States are taken in ascending order of (cost so far + what must still be spent at least). An absent version that
 *    the program still needs must be made again, which only its producer does; what that one reads and is absent must
 *    be made before, and so on. The sum over these producers never exceeds what any way to the end costs, so the first
 *    end taken is a best one. If one of them may not be replayed any more, there is no way to the end. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64, NOTHING = -1 };

static const uint32_t MOST_STATES = 1000000;
static const uint64_t NEVER = UINT64_MAX;

struct operation {
    uint64_t nanoseconds, workspace, scratch;
    int reads[MOST], read_count, writes[MOST], write_count;
    long until;
    uint64_t read_set, write_set;
};

struct version {
    uint64_t bytes;
    int producer, replaces, last_need; /* last operation that reads or replaces it; NOTHING if none does */
    bool is_kept;
    long droppable;
};

static struct operation operations[MOST];
static struct version versions[MOST];
static int operation_count, version_count;
static uint64_t fixed, cap;
static bool is_plain;

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
                          .replaces = NOTHING,
                          .last_need = NOTHING};
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

static uint64_t bit(int v)
{
    return 1ull << v;
}

static bool has(uint64_t set, int v)
{
    return set >> v & 1;
}

static int take_lowest(uint64_t *set)
{
    int v = __builtin_ctzll(*set);
    *set &= *set - 1;
    return v;
}

static uint64_t bytes_of(uint64_t set)
{
    uint64_t bytes = 0;
    while (set)
        bytes += versions[take_lowest(&set)].bytes;
    return bytes;
}

/* By position: what is needed by the program from there on, what is useful, what may be dropped. */
static uint64_t needed[MOST + 1], useful[MOST + 1], droppable[MOST + 1];

static void need(int v, int operation)
{
    if (v != NOTHING && versions[v].last_need < operation)
        versions[v].last_need = operation;
}

/* What replaying an operation may take from those before it, or leave in another state. */
static uint64_t touched_by(const struct operation *o)
{
    uint64_t touched = o->read_set;
    for (int k = 0; k < o->write_count; k++)
        if (versions[o->writes[k]].replaces != NOTHING)
            touched |= bit(o->writes[k]) | bit(versions[o->writes[k]].replaces);
    return touched;
}

/* Does it replace what cannot be dropped at p? */
static bool frees_undroppable(const struct operation *o, int p)
{
    for (int k = 0; k < o->write_count; k++) {
        int old = versions[o->writes[k]].replaces;
        if (old != NOTHING && versions[old].droppable > p)
            return true;
    }
    return false;
}

static void prepare_position(int p)
{
    for (int v = 0; v < version_count; v++) {
        bool was_made = versions[v].producer < p;
        needed[p] |= was_made && (versions[v].is_kept || versions[v].last_need >= p) ? bit(v) : 0;
        droppable[p] |= versions[v].droppable <= p ? bit(v) : 0;
    }
    useful[p] = needed[p];
    for (int o = p; o-- > 0;)
        if (operations[o].until >= p && ((operations[o].write_set & useful[p]) || frees_undroppable(&operations[o], p)))
            useful[p] |= touched_by(&operations[o]);
}

static void prepare(void)
{
    for (int k = 0; k < operation_count; k++) {
        struct operation *o = &operations[k];
        for (int r = 0; r < o->read_count; r++) {
            o->read_set |= bit(o->reads[r]);
            need(o->reads[r], k);
        }
        for (int w = 0; w < o->write_count; w++) {
            o->write_set |= bit(o->writes[w]);
            need(versions[o->writes[w]].replaces, k);
        }
    }
    for (int p = 0; p <= operation_count; p++)
        prepare_position(p);
}

struct state {
    uint64_t set, cost;
    int position;
};

struct entry {
    uint64_t estimate, cost;
    uint32_t state;
};

static struct state *states;
static uint32_t *table; /* open addressing: number of a state + 1; 0: empty */
static struct entry *heap;
static uint32_t state_count, state_room, table_size;
static size_t heap_count, heap_room;

static void *grow(void *old, size_t count, size_t size)
{
    void *grown = realloc(old, count * size);
    if (!grown)
        fail("out of memory");
    return grown;
}

static uint32_t *look_up(uint64_t set, int position)
{
    uint64_t key = (set ^ (uint64_t)position << 57) * 0x9e3779b97f4a7c15ull;
    uint32_t at = (uint32_t)(key >> 32) & (table_size - 1);
    while (table[at] && (states[table[at] - 1].set != set || states[table[at] - 1].position != position))
        at = (at + 1) & (table_size - 1);
    return &table[at];
}

static void grow_table(void)
{
    table_size = table_size ? 2 * table_size : 1 << 16;
    free(table);
    table = grow(NULL, table_size, sizeof *table);
    memset(table, 0, table_size * sizeof *table);
    for (uint32_t k = 0; k < state_count; k++)
        *look_up(states[k].set, states[k].position) = k + 1;
}

/* Least estimate first; of equal ones the one that has got farther. */
static bool precedes(const struct entry *a, const struct entry *b)
{
    if (a->estimate != b->estimate)
        return a->estimate < b->estimate;
    return states[a->state].position > states[b->state].position;
}

static void push(struct entry entry)
{
    if (heap_count == heap_room)
        heap = grow(heap, heap_room = heap_room ? 2 * heap_room : 1 << 16, sizeof *heap);
    size_t k = heap_count++;
    for (; k && precedes(&entry, &heap[(k - 1) / 2]); k = (k - 1) / 2)
        heap[k] = heap[(k - 1) / 2];
    heap[k] = entry;
}

static struct entry pop(void)
{
    struct entry least = heap[0], last = heap[--heap_count];
    size_t k = 0;
    for (size_t child; (child = 2 * k + 1) < heap_count; k = child) {
        child += child + 1 < heap_count && precedes(&heap[child + 1], &heap[child]);
        if (!precedes(&heap[child], &last))
            break;
        heap[k] = heap[child];
    }
    heap[k] = last;
    return least;
}

/* What must still be spent at least, or NEVER. */
static uint64_t least_to_come(int position, uint64_t set)
{
    uint64_t missing = needed[position] & ~set, counted = 0, spent = 0;
    while (missing) {
        int producer = versions[take_lowest(&missing)].producer;
        if (producer == NOTHING || operations[producer].until < position)
            return NEVER;
        const struct operation *o = &operations[producer];
        if (counted & o->write_set)
            continue;
        counted |= o->write_set;
        spent += o->nanoseconds;
        missing |= o->read_set & ~set;
        for (int k = 0; k < o->write_count; k++)
            if (!has(set, o->writes[k]) && versions[o->writes[k]].replaces != NOTHING)
                missing |= bit(versions[o->writes[k]].replaces) & ~set;
    }
    return spent;
}

static void reach(int position, uint64_t set, uint64_t cost)
{
    set &= is_plain ? ~0ull : useful[position] | ~droppable[position];
    uint64_t to_come = is_plain ? 0 : least_to_come(position, set);
    if (to_come == NEVER)
        return;
    if (2 * state_count >= table_size)
        grow_table();
    uint32_t *known = look_up(set, position);
    if (*known && states[*known - 1].cost <= cost)
        return;
    if (!*known) {
        if (state_count == state_room)
            states = grow(states, state_room = state_room ? 2 * state_room : 1 << 16, sizeof *states);
        states[state_count++] = (struct state){set, UINT64_MAX, position};
        *known = state_count;
    }
    states[*known - 1].cost = cost;
    uint32_t index = *known - 1;
    if (!is_plain)
        for (uint64_t absent = useful[position] & droppable[position] & ~set; absent;) {
            uint32_t *more = look_up(set | bit(take_lowest(&absent)), position);
            if (*more && states[*more - 1].cost <= cost)
                return;
        }
    push((struct entry){cost + to_come, cost, index});
}

/* An execution that is wanted in a state. */
struct wish {
    const struct operation *operation;
    int position;
    bool is_again;
    uint64_t cost; /* with it */
};

/* What counts at least while it runs with `set` present. */
static uint64_t least_bytes(const struct wish *w, uint64_t set)
{
    const struct operation *o = w->operation;
    uint64_t bytes = fixed + bytes_of(set) + o->workspace + (w->is_again ? o->scratch : 0);
    for (int k = 0; k < o->write_count; k++)
        bytes += versions[o->writes[k]].replaces == NOTHING ? versions[o->writes[k]].bytes : 0;
    return bytes;
}

/* Runs it with `set` present; false where it does not fit or something is missing. */
static bool execute(const struct wish *w, uint64_t set, uint64_t *after)
{
    const struct operation *o = w->operation;
    uint64_t bytes = least_bytes(w, set);
    *after = set | o->write_set;
    if (o->read_set & ~set)
        return false;
    for (int k = 0; k < o->write_count; k++) {
        int v = o->writes[k], old = versions[v].replaces;
        if (old == NOTHING)
            continue;
        if (has(set, v))
            bytes += versions[v].bytes; /* in scratch */
        else if (has(set, old))
            *after &= ~bit(old);
        else
            return false;
    }
    return bytes <= cap;
}

/* Tries all least sets of drops among `candidates`, of which `dropped` are gone from `set` already. */
static void try_drops(const struct wish *w, uint64_t set, uint64_t candidates, uint64_t dropped)
{
    uint64_t after, other;
    if (execute(w, set, &after)) {
        for (uint64_t rest = dropped; rest;)
            if (execute(w, set | bit(take_lowest(&rest)), &other))
                return; /* one drop too many: another set has it without */
        reach(w->position + !w->is_again, after, w->cost);
        return;
    }
    while (candidates && least_bytes(w, set & ~candidates) <= cap) {
        uint64_t v = bit(take_lowest(&candidates));
        try_drops(w, set & ~v, candidates, dropped | v);
    }
}

/* The versions of point 2 for which both ways are tried. */
static uint64_t made_in_place_of_undroppable(const struct operation *o, uint64_t set, uint64_t may_go)
{
    uint64_t found = 0;
    for (int k = 0; k < o->write_count; k++) {
        int old = versions[o->writes[k]].replaces;
        if (old != NOTHING && has(set, old) && !has(may_go, old))
            found |= bit(o->writes[k]) & set & may_go;
    }
    return found;
}

/* What must be there for it. */
static uint64_t inputs_of(const struct operation *o, uint64_t set)
{
    uint64_t inputs = o->read_set;
    for (int k = 0; k < o->write_count; k++)
        if (!has(set, o->writes[k]) && versions[o->writes[k]].replaces != NOTHING)
            inputs |= bit(versions[o->writes[k]].replaces);
    return inputs;
}

static void try_execution(const struct wish *w, uint64_t set)
{
    uint64_t may_go = droppable[w->position], chosen = 0;
    uint64_t optional = made_in_place_of_undroppable(w->operation, set, may_go);
    do {
        uint64_t left = set & ~chosen, inputs = inputs_of(w->operation, left);
        if (!(inputs & ~left))
            try_drops(w, left, left & may_go & ~inputs, 0);
        chosen = (chosen - optional) & optional; /* the next subset */
    } while (chosen);
}

static void expand_plainly(struct state from)
{
    uint64_t after;
    for (uint64_t rest = from.set & droppable[from.position]; rest;)
        reach(from.position, from.set & ~bit(take_lowest(&rest)), from.cost);
    for (int k = 0; k <= from.position && k < operation_count; k++) {
        bool is_again = k < from.position;
        const struct operation *o = &operations[k];
        struct wish wish = {o, from.position, is_again, from.cost + (is_again ? o->nanoseconds : 0)};
        if ((!is_again || from.position <= o->until) && execute(&wish, from.set, &after))
            reach(from.position + !is_again, after, wish.cost);
    }
}

static void expand(struct state from)
{
    int position = from.position;
    if (position < operation_count)
        try_execution(&(struct wish){&operations[position], position, false, from.cost}, from.set);
    for (int k = 0; k < position; k++) {
        const struct operation *o = &operations[k];
        bool is_useful = (o->write_set & useful[position] & ~from.set) || frees_undroppable(o, position);
        if (is_useful && position <= o->until)
            try_execution(&(struct wish){o, position, true, from.cost + o->nanoseconds}, from.set);
    }
}

static void search(void)
{
    uint64_t start = 0;
    for (int v = 0; v < version_count; v++)
        start |= versions[v].producer == NOTHING ? bit(v) : 0;
    heap_count = state_count = 0;
    if (table)
        memset(table, 0, table_size * sizeof *table);
    if (fixed + bytes_of(start) <= cap)
        reach(0, start, 0);
    while (heap_count && state_count < MOST_STATES) {
        struct entry least = pop();
        struct state state = states[least.state];
        if (state.cost < least.cost)
            continue;
        if (state.position == operation_count && !(needed[operation_count] & ~state.set)) {
            printf("%" PRIu64 " %" PRIu64 "\n", cap, state.cost);
            return;
        }
        if (is_plain)
            expand_plainly(state);
        else
            expand(state);
    }
    printf("%" PRIu64 " %s\n", cap, heap_count ? "unknown" : "infeasible");
}

int main(int argc, char **argv)
{
    is_plain = argc > 1 && strcmp(argv[1], "--plain") == 0;
    if (argc < 3 + is_plain)
        fail("usage: exhaustive [--plain] PROBLEM CAP...");
    read_problem(argv[1 + is_plain]);
    prepare();
    for (int k = 2 + is_plain; k < argc; k++) {
        cap = strtoull(argv[k], NULL, 10);
        search();
        fflush(stdout);
    }
    return 0;
}
