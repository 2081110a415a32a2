#include "tests/unit/network.h"

#include <string.h>

#define WEIGHT_BYTES            512u
#define SLOT_BYTES              64u
#define STATE_BUFFERS_PER_BLOCK 4u

struct block {
    uint64_t weight, momentum, weight_gradient, statistics; /* persistent */
    uint64_t linear_out, norm_out, mask, dropout_out;       /* activations; 0: not held */
};

struct network {
    const struct network_settings *settings;
    const struct machine *machine;
    struct network_result *result;
    struct block blocks[NETWORK_MAX_BLOCKS];
    uint64_t loss, table, copied_table, noise_sum, noise_flag, through_sum, side_sum; /* small, persistent */
    uint64_t input, noise, hidden, hidden_by_copy;
    uint64_t gradient, fresh; /* fresh: the next gradient */
    uint64_t evaluated, evaluated_next;
    size_t bytes; /* of an activation in this iteration */
    uint64_t step;
};

static bool launch(struct network *n, uint32_t kernel, struct network_arguments arguments)
{
    arguments.words = n->bytes / 8;
    return n->machine->launch(kernel, &arguments);
}

static bool hold(struct network *n, uint64_t *address, size_t bytes)
{
    return n->machine->allocate(address, bytes);
}

static bool drop(struct network *n, uint64_t *address)
{
    uint64_t held = *address;
    *address = 0;
    return held == 0 || n->machine->release(held);
}

/* ---- beginning ---- */

static bool fill(struct network *n, uint64_t address, size_t bytes, uint64_t seed)
{
    static uint64_t values[1 << 16];
    for (size_t i = 0; i < bytes / 8; i++) {
        values[i] = (seed * 0x9e3779b97f4a7c15ull + i) * 0xd6e8feb86659fd93ull;
        values[i] ^= values[i] >> 32;
    }
    return n->machine->copy_in(address, values, bytes);
}

static bool make_state(struct network *n)
{
    for (uint32_t b = 0; b < n->settings->blocks; b++) {
        struct block *block = &n->blocks[b];
        uint64_t *buffers[] = {&block->weight, &block->momentum, &block->weight_gradient, &block->statistics};
        for (uint32_t i = 0; i < STATE_BUFFERS_PER_BLOCK; i++) {
            if (!hold(n, buffers[i], WEIGHT_BYTES) || !n->machine->clear(*buffers[i], WEIGHT_BYTES)) {
                return false;
            }
        }
        if (!fill(n, block->weight, WEIGHT_BYTES, b + 1)) {
            return false;
        }
    }
    uint64_t *slots[] = {&n->loss,       &n->table,       &n->copied_table, &n->noise_sum,
                         &n->noise_flag, &n->through_sum, &n->side_sum};
    for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++) {
        if (!hold(n, slots[i], SLOT_BYTES) || !n->machine->clear(*slots[i], SLOT_BYTES)) {
            return false;
        }
    }
    return true;
}

static bool make_hidden(struct network *n)
{
    if (n->settings->has_stored_pointer) {
        if (!hold(n, &n->hidden, n->settings->unit_bytes) || !fill(n, n->hidden, n->settings->unit_bytes, 77) ||
            !launch(n, NETWORK_store_pointer, (struct network_arguments){.pointers = {n->table, n->hidden}})) {
            return false;
        }
    }
    if (n->settings->has_copied_pointer) {
        return hold(n, &n->hidden_by_copy, n->settings->unit_bytes) &&
               fill(n, n->hidden_by_copy, n->settings->unit_bytes, 78) &&
               n->machine->copy_in(n->copied_table, &n->hidden_by_copy, sizeof n->hidden_by_copy);
    }
    return true;
}

/* ---- forward ---- */

static bool is_at(const struct network *n, uint32_t iteration)
{
    return iteration != 0 && n->step == iteration;
}

static bool forward_block(struct network *n, uint32_t index, uint64_t in)
{
    struct block *b = &n->blocks[index];
    if (!hold(n, &b->linear_out, n->bytes) ||
        !launch(n, NETWORK_linear_forward, (struct network_arguments){.pointers = {b->linear_out, in, b->weight}}) ||
        !hold(n, &b->norm_out, n->bytes) ||
        !launch(n, NETWORK_norm_forward,
                (struct network_arguments){.pointers = {b->norm_out, b->linear_out, b->statistics}}) ||
        !launch(n, NETWORK_activate, (struct network_arguments){.pointers = {b->norm_out}}) ||
        !hold(n, &b->dropout_out, n->bytes) || !hold(n, &b->mask, n->bytes)) {
        return false;
    }
    return launch(n, NETWORK_dropout_forward,
                  (struct network_arguments){.pointers = {b->dropout_out, b->mask, b->norm_out},
                                             .scalars = {42, n->step * 1000 + index * 50}});
}

static bool touch_hidden(struct network *n)
{
    const struct network_settings *s = n->settings;
    if (s->has_stored_pointer &&
        (!launch(n, NETWORK_change_through, (struct network_arguments){.pointers = {n->table}, .scalars = {n->step}}) ||
         !launch(n, NETWORK_read_through, (struct network_arguments){.pointers = {n->through_sum, n->table}}))) {
        return false;
    }
    return !s->has_copied_pointer ||
           (launch(n, NETWORK_change_through,
                   (struct network_arguments){.pointers = {n->copied_table}, .scalars = {n->step}}) &&
            launch(n, NETWORK_read_through, (struct network_arguments){.pointers = {n->through_sum, n->copied_table}}));
}

/* Some readers on a second stream: a weight that replays need as well, and an activation. */
static bool read_aside(struct network *n, const struct block *b)
{
    uint32_t from = n->settings->side_from;
    if ((from == 0 || n->step < from) && !is_at(n, n->settings->side_at)) {
        return true;
    }
    return n->machine->lane(1) &&
           launch(n, NETWORK_add_mean, (struct network_arguments){.pointers = {n->side_sum, b->linear_out}}) &&
           launch(n, NETWORK_noise_sum, (struct network_arguments){.pointers = {n->noise_sum, b->norm_out}}) &&
           n->machine->lane(0);
}

static bool store_activation(struct network *n)
{
    const struct block *first = &n->blocks[0];
    if (is_at(n, n->settings->late_pointer_at) &&
        (!n->machine->copy_in(n->copied_table, &first->linear_out, sizeof first->linear_out) ||
         !launch(n, NETWORK_read_through, (struct network_arguments){.pointers = {n->through_sum, n->copied_table}}))) {
        return false;
    }
    return !n->settings->has_activation_pointer ||
           launch(n, NETWORK_store_pointer, (struct network_arguments){.pointers = {n->table, first->norm_out}});
}

static bool read_activation(struct network *n)
{
    return !n->settings->has_activation_pointer ||
           launch(n, NETWORK_read_through, (struct network_arguments){.pointers = {n->through_sum, n->table}});
}

static bool forward(struct network *n, uint32_t stop)
{
    if (!hold(n, &n->input, n->bytes) || !fill(n, n->input, n->bytes, 1000 + n->step)) {
        return false;
    }
    if (n->settings->has_noise &&
        (!hold(n, &n->noise, n->bytes) ||
         !launch(n, NETWORK_noise, (struct network_arguments){.pointers = {n->noise}}) ||
         !launch(n, NETWORK_noise_sum, (struct network_arguments){.pointers = {n->noise_sum, n->noise}}))) {
        return false;
    }
    for (uint32_t b = 0; b < n->settings->blocks && b < stop; b++) {
        if (!forward_block(n, b, b == 0 ? n->input : n->blocks[b - 1].dropout_out) ||
            (b == n->settings->blocks / 2 && !(touch_hidden(n) && read_aside(n, &n->blocks[b / 2])))) {
            return false;
        }
    }
    return store_activation(n);
}

/* ---- backward ---- */

static bool replace_gradient(struct network *n)
{
    bool is_done = drop(n, &n->gradient);
    n->gradient = n->fresh;
    n->fresh = 0;
    return is_done;
}

static bool backward_block(struct network *n, uint32_t index, uint64_t *in)
{
    struct block *b = &n->blocks[index];
    if (!hold(n, &n->fresh, n->bytes) ||
        !launch(n, NETWORK_dropout_backward,
                (struct network_arguments){.pointers = {n->fresh, n->gradient, b->mask}}) ||
        !replace_gradient(n) || !drop(n, &b->mask) ||
        !launch(n, NETWORK_activate_backward, (struct network_arguments){.pointers = {n->gradient, b->norm_out}}) ||
        !drop(n, &b->norm_out) || !hold(n, &n->fresh, n->bytes) ||
        !launch(n, NETWORK_norm_backward,
                (struct network_arguments){.pointers = {n->fresh, n->gradient, b->linear_out}}) ||
        !replace_gradient(n) || !drop(n, &b->linear_out) || !hold(n, &n->fresh, n->bytes)) {
        return false;
    }
    return launch(
               n, NETWORK_linear_backward,
               (struct network_arguments){.pointers = {n->fresh, n->gradient, *in, b->weight, b->weight_gradient}}) &&
           replace_gradient(n) && drop(n, in);
}

static bool backward(struct network *n, uint32_t stop)
{
    uint32_t last = n->settings->blocks - 1;
    if (!hold(n, &n->gradient, n->bytes) ||
        !launch(n, NETWORK_loss_backward,
                (struct network_arguments){.pointers = {n->gradient, n->blocks[last].dropout_out, n->loss}}) ||
        !drop(n, &n->blocks[last].dropout_out)) {
        return false;
    }
    for (uint32_t b = last + 1; b-- > stop;) {
        if ((b == 0 && !read_activation(n)) ||
            !backward_block(n, b, b == 0 ? &n->input : &n->blocks[b - 1].dropout_out)) {
            return false;
        }
    }
    return true;
}

static bool check_noise(struct network *n)
{
    return !n->settings->has_noise ||
           (launch(n, NETWORK_noise_check,
                   (struct network_arguments){.pointers = {n->noise_flag, n->noise_sum, n->noise}}) &&
            drop(n, &n->noise));
}

static bool drop_everything(struct network *n)
{
    bool is_done = drop(n, &n->input) && drop(n, &n->noise) && drop(n, &n->gradient) && drop(n, &n->fresh) &&
                   drop(n, &n->evaluated) && drop(n, &n->evaluated_next);
    for (uint32_t i = 0; i < n->settings->blocks; i++) {
        struct block *b = &n->blocks[i];
        is_done = is_done && drop(n, &b->linear_out) && drop(n, &b->norm_out) && drop(n, &b->mask) &&
                  drop(n, &b->dropout_out);
    }
    return is_done;
}

/* ---- iterations ---- */

static bool optimise(struct network *n)
{
    for (uint32_t i = 0; i < n->settings->blocks; i++) {
        const struct block *b = &n->blocks[i];
        if (!launch(n, NETWORK_optimise,
                    (struct network_arguments){.pointers = {b->weight, b->momentum, b->weight_gradient},
                                               .scalars = {n->step + 1}})) {
            return false;
        }
    }
    return true;
}

static bool clear_gradients(struct network *n)
{
    for (uint32_t i = 0; i < n->settings->blocks; i++) {
        if (!n->machine->clear(n->blocks[i].weight_gradient, WEIGHT_BYTES)) {
            return false;
        }
    }
    return true;
}

static bool read_loss(struct network *n, uint64_t in, uint64_t *loss)
{
    return launch(n, NETWORK_loss_forward, (struct network_arguments){.pointers = {n->loss, in}}) &&
           n->machine->copy_out(loss, n->loss, sizeof *loss);
}

static bool iterate(struct network *n)
{
    const struct network_settings *s = n->settings;
    n->bytes = is_at(n, s->small_batch_at) ? s->unit_bytes / 2 : s->unit_bytes;
    if (!clear_gradients(n)) {
        return false;
    }
    if (is_at(n, s->exception_at)) {
        return forward(n, s->blocks / 2) && drop_everything(n);
    }
    uint64_t *loss = &n->result->losses[n->step % 64];
    if (!forward(n, NETWORK_NEVER) || !read_loss(n, n->blocks[s->blocks - 1].dropout_out, loss)) {
        return false;
    }
    if (is_at(n, s->backward_exception_at)) {
        return backward(n, s->blocks / 2) && drop_everything(n);
    }
    return backward(n, 0) && check_noise(n) && drop(n, &n->gradient) && optimise(n);
}

/* Forward only: nothing is kept for a backward pass. */
static bool evaluate(struct network *n)
{
    uint64_t *in = &n->evaluated, *out = &n->evaluated_next, loss;
    if (!hold(n, in, n->bytes) || !fill(n, *in, n->bytes, 5000 + n->step)) {
        return false;
    }
    for (uint32_t i = 0; i < n->settings->blocks; i++) {
        const struct block *b = &n->blocks[i];
        if (!hold(n, out, n->bytes) ||
            !launch(n, NETWORK_linear_forward, (struct network_arguments){.pointers = {*out, *in, b->weight}}) ||
            !drop(n, in) || !hold(n, in, n->bytes) ||
            !launch(n, NETWORK_norm_evaluate, (struct network_arguments){.pointers = {*in, *out, b->statistics}}) ||
            !drop(n, out) || !launch(n, NETWORK_activate, (struct network_arguments){.pointers = {*in}})) {
            return false;
        }
    }
    if (!read_loss(n, *in, &loss) || !drop(n, in)) {
        return false;
    }
    n->result->losses[n->step % 64] ^= loss * 3;
    return true;
}

static bool is_evaluated(const struct network_settings *s, uint64_t step)
{
    return (step != 0 && step == s->evaluate_after) ||
           (s->evaluate_every != 0 && step % s->evaluate_every == s->evaluate_every - 1);
}

static bool read_state(struct network *n)
{
    struct network_result *r = n->result;
    for (uint32_t b = 0; b < n->settings->blocks; b++) {
        const uint64_t buffers[] = {n->blocks[b].weight, n->blocks[b].momentum, n->blocks[b].weight_gradient,
                                    n->blocks[b].statistics};
        for (uint32_t i = 0; i < STATE_BUFFERS_PER_BLOCK; i++) {
            if (!n->machine->copy_out(r->state + r->state_bytes, buffers[i], WEIGHT_BYTES)) {
                return false;
            }
            r->state_bytes += WEIGHT_BYTES;
        }
    }
    const uint64_t hidden[] = {n->hidden, n->hidden_by_copy};
    for (uint32_t i = 0; i < 2; i++) {
        if (hidden[i] != 0 && r->state_bytes + 4096 <= sizeof r->state) {
            if (!n->machine->copy_out(r->state + r->state_bytes, hidden[i], 4096)) {
                return false;
            }
            r->state_bytes += 4096;
        }
    }
    return n->machine->copy_out(r->state + r->state_bytes, n->through_sum, SLOT_BYTES) &&
           n->machine->copy_out(r->state + r->state_bytes + SLOT_BYTES, n->side_sum, SLOT_BYTES) &&
           n->machine->copy_out(&r->corrupt, n->noise_flag, sizeof r->corrupt);
}

static struct network last_run;

void network_run(const struct network_settings *settings, const struct machine *machine, struct network_result *result)
{
    last_run =
        (struct network){.settings = settings, .machine = machine, .result = result, .bytes = settings->unit_bytes};
    memset(result, 0, sizeof *result);
    if (!make_state(&last_run) || !make_hidden(&last_run)) {
        return;
    }
    for (last_run.step = 0; last_run.step < settings->iterations; last_run.step++) {
        if (!iterate(&last_run) || (is_evaluated(settings, last_run.step) && !evaluate(&last_run))) {
            return;
        }
        result->finished_iterations++;
        if (machine->ended_iteration != NULL) {
            machine->ended_iteration((uint32_t)last_run.step);
        }
    }
    result->is_complete = read_state(&last_run);
}

bool network_free(const struct machine *machine)
{
    last_run.machine = machine;
    bool is_done = drop_everything(&last_run);
    for (uint32_t b = 0; b < last_run.settings->blocks; b++) {
        struct block *block = &last_run.blocks[b];
        is_done = drop(&last_run, &block->weight) && drop(&last_run, &block->momentum) &&
                  drop(&last_run, &block->weight_gradient) && drop(&last_run, &block->statistics) && is_done;
    }
    uint64_t *others[] = {&last_run.loss,      &last_run.table,      &last_run.copied_table,
                          &last_run.noise_sum, &last_run.noise_flag, &last_run.through_sum,
                          &last_run.side_sum,  &last_run.hidden,     &last_run.hidden_by_copy};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        is_done = drop(&last_run, others[i]) && is_done;
    }
    return is_done;
}

bool network_equal(const struct network_result *a, const struct network_result *b)
{
    return a->is_complete && b->is_complete && a->corrupt == b->corrupt && a->state_bytes == b->state_bytes &&
           memcmp(a->losses, b->losses, sizeof a->losses) == 0 && memcmp(a->state, b->state, sizeof a->state) == 0;
}
