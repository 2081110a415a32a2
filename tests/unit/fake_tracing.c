/* No trace is asked for. */
#include "shim/recorder.h"
#include "shim/tracing.h"

_Atomic bool recorder_on;

uint64_t recorder_lost(void)
{
    return 0;
}

uint32_t tracing_stack(void)
{
    return 0;
}

void tracing_open(void)
{
}

void tracing_finish(void)
{
}

void tracing_held(struct allocation *allocation, uint32_t stack)
{
    (void)allocation, (void)stack;
}

void tracing_freed(const struct allocation *allocation)
{
    (void)allocation;
}

void tracing_own(uint64_t bytes, const char *what)
{
    (void)bytes, (void)what;
}

void tracing_charged(uint64_t bytes, const char *what, uint32_t stack)
{
    (void)bytes, (void)what, (void)stack;
}

void tracing_refunded(uint64_t bytes)
{
    (void)bytes;
}

uint64_t tracing_next(void)
{
    return 0;
}

void tracing_ran(const struct operation *operation, const struct touches *touches, uint32_t stream)
{
    (void)operation, (void)touches, (void)stream;
}

void tracing_replayed(const struct script_operation *operation, uint64_t number, uint32_t stream)
{
    (void)operation, (void)number, (void)stream;
}

void tracing_timed(uint64_t number, uint64_t nanoseconds)
{
    (void)number, (void)nanoseconds;
}

void tracing_moved(enum trace_movement movement, uint64_t id, uint64_t bytes)
{
    (void)movement, (void)id, (void)bytes;
}

void tracing_phase(enum phase phase)
{
    (void)phase;
}

void tracing_position(uint64_t position)
{
    (void)position;
}

void tracing_iteration(uint64_t index, uint64_t begin, uint64_t end, enum phase phase)
{
    (void)index, (void)begin, (void)end, (void)phase;
}

void tracing_write(const struct script *script, const struct policy_problem *problem, uint64_t index)
{
    (void)script, (void)problem, (void)index;
}
