/* Finds the training iteration in a sequence of operations.
 *
 * One operation after the other is fed: a signature (what it is and on what sizes), the state of the live set
 * (a commutative hash of the live allocations' sizes) and the bytes the program holds. A period p is found at
 * position t when
 *   the operations (t-p, t] equal (t-2p, t-p], compared one by one;
 *   the live set is the same at t, t-p and t-2p;
 *   the window (t-p, t] holds demand >= 0.9 x the highest ever fed, and a fall of demand >= 0.5 x the greatest
 *   fall ever fed: identical layers, optimiser loops and evaluation passes do neither, or leave the live set
 *   changed.
 * A period that is mostly repetitions of a shorter one found before (iterations with an evaluation pass behind every
 * hundredth) is not proposed: the shorter one is.
 * Where demand hardly ever falls (everything allocated once), the third rule says nothing; then the repetition
 * must cover PERIOD_FLAT_OPERATIONS at least.
 *
 * Positions count from 0 and are never reused. A boundary is the position of the first operation of an iteration:
 * the one with which demand leaves its lowest level (of several such places, the one before the highest rise).
 * It does not depend on when the period is found.
 *
 * Cost: amortised constant time per operation, also in long runs of equal operations. Memory: PERIOD_MOST_ENTRIES
 * operations of history at most (the older half is forgotten then), mapped directly: no malloc, so it may run
 * inside a hook. Not thread-safe: one caller, one lane. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERIOD_MOST_ENTRIES    ((uint32_t)1 << 20)
#define PERIOD_FLAT_OPERATIONS 256

struct period_operation {
    uint64_t signature;
    uint64_t live;   /* as the operation runs */
    uint64_t demand; /* bytes held as it runs */
};

struct period_answer {
    uint64_t length;   /* operations per iteration; 0: none known */
    uint64_t boundary; /* [boundary - length, boundary) is the last whole iteration seen */
    uint64_t found_at; /* position of the operation that completed the proof */
};

struct period;

/* NULL if there is no memory. most_entries: history kept, 0 = PERIOD_MOST_ENTRIES. */
struct period *period_start(uint32_t most_entries);
void period_stop(struct period *period);

/* Feeds the next operation. True if the answer has changed: a period was found, or the one known was left. Once out
 * of memory it stays without an answer. */
bool period_feed(struct period *period, const struct period_operation *operation);

/* The period that holds now. While it holds, boundary advances by length. */
struct period_answer period_now(const struct period *period);

/* The caller could not use the period: it is not proposed again until another one was found or `patience` more
 * operations were fed. */
void period_reject(struct period *period, uint64_t patience);

uint64_t period_position(const struct period *period); /* operations fed so far */
