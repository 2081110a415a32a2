#include "shim/judge.h"

#include <stddef.h>

#include "shim/inside.h"

static uint64_t submissions; /* stamps the allocations that the operation in hand touches */

static bool has_bit(const uint64_t *words, uint32_t where)
{
    uint32_t word = where / 8;
    uint32_t last = (where + 7) / 8; /* of a packed struct: the address lies in two words */
    return last >= 512 || (words[word / 64] >> (word % 64) & 1) || (words[last / 64] >> (last % 64) & 1);
}

static void judge_launch(const struct function_facts *facts, const struct use *use, struct touch *touch)
{
    touch->is_stored |= facts->is_readable && has_bit(facts->stored_words, use->where);
    touch->is_loaded |= !facts->is_readable || has_bit(facts->loaded_words, use->where);
    touch->is_published |= facts->is_readable && has_bit(facts->escaped_words, use->where);
}

static void judge_copy(const struct copy_arguments *copy, const struct use *use, struct allocation *allocation,
                       struct touch *touch)
{
    touch->is_exact = true;
    if (use->where == offsetof(struct copy_arguments, destination)) {
        touch->is_stored = true;
        touch->is_full_write = use->address == allocation->base && copy->bytes >= allocation->bytes;
        touch->is_loaded |= !touch->is_full_write;
    } else {
        touch->is_loaded = true;
        touch->is_full_write = false;
    }
}

static void judge_set(const struct set_arguments *set, const struct use *use, struct allocation *allocation,
                      struct touch *touch)
{
    uint64_t row = set->width * set->element_bytes;
    bool is_one_run = set->height <= 1 || set->pitch == row;
    touch->is_exact = touch->is_stored = true;
    touch->is_full_write = use->address == allocation->base && is_one_run &&
                           row * (set->height == 0 ? 1 : set->height) >= allocation->bytes;
    touch->is_loaded = !touch->is_full_write;
}

void judge_touches(const struct operation *operation, struct touches *touches)
{
    touches->count = 0;
    touches->is_overfull = false;
    submissions++;
    for (uint32_t i = 0; i < operation->use_count; i++) {
        const struct use *use = &operation->uses[i];
        uint32_t index = space_find(use->address);
        touches->of_use[i] = SCRIPT_NONE;
        if (index == SPACE_NONE) {
            continue;
        }
        struct allocation *allocation = space_get(index);
        if (allocation->stamp != submissions) {
            if (touches->count == TOUCHES_MAX) {
                touches->is_overfull = true;
                continue;
            }
            allocation->stamp = submissions;
            allocation->stamp_touch = touches->count;
            touches->items[touches->count++] = (struct touch){.allocation = index, .was_fresh = allocation->is_fresh};
        }
        struct touch *touch = &touches->items[allocation->stamp_touch];
        touches->of_use[i] = allocation->stamp_touch;
        if (operation->kind == OPERATION_LAUNCH) {
            judge_launch(operation->facts, use, touch);
        } else if (operation->kind == OPERATION_COPY) {
            judge_copy((const void *)operation->arguments, use, allocation, touch);
        } else {
            judge_set((const void *)operation->arguments, use, allocation, touch);
        }
    }
}

uint64_t judge_signature(const struct operation *operation, const struct touches *touches)
{
    uint64_t hash = launch_signature(operation);
    for (uint32_t i = 0; i < operation->use_count; i++) {
        if (touches->of_use[i] != SCRIPT_NONE) {
            const struct allocation *allocation = space_get(touches->items[touches->of_use[i]].allocation);
            uint64_t offset = operation->uses[i].address - allocation->base;
            uint64_t use = allocation->bytes * 0x9e3779b97f4a7c15ull ^
                           (offset ^ (uint64_t)operation->uses[i].where << 48) * 0xd6e8feb86659fd93ull;
            hash = (hash ^ use ^ use >> 32) * 0xff51afd7ed558ccdull;
            hash ^= hash >> 29;
        }
    }
    return hash;
}
