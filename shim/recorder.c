#include "shim/recorder.h"

#include "shim/config.h"
#include "shim/driver.h"
#include "shim/python.h"
#include "shim/recorder_file.h"
#include "shim/say.h"
#include "shim/store.h"
#include "trace/definitions.h"
#include "trace/file.h"
#include "trace/ring.h"
#include "trace/stack.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shim/inside.h"

#define RINGS_MAX      1024u
#define ENDING_REST_NS 1000000u
#define LAST_EVENTS_NS 1000000000u /* for events that threads are making when the end comes */

enum rest { REST_NONE, REST_NAP, REST_SLEEP }; /* in a nap only a ring that fills wakes, in sleep any event */

struct thread {
    struct ring ring;
    pid_t owner;             /* a ring whose owner is gone and that is empty may be taken over */
    _Atomic uint32_t number; /* of the thread, in the trace */
};

struct parcel {
    struct parcel *next;
    size_t bytes, mapped;
};

_Static_assert(sizeof(struct parcel) <= RECORDER_GIVE_HEAD, "the records follow it");

_Atomic bool recorder_on;

static struct {
    _Atomic bool has_failed, is_ending;
    _Atomic(struct definitions *) definitions;
    _Atomic uint64_t sequence, lost;
    _Atomic(struct thread *) threads[RINGS_MAX];
    _Atomic uint32_t thread_count;
    pthread_mutex_t joining;          /* held while a thread gets its ring */
    _Atomic(struct parcel *) parcels; /* newest first */
    _Atomic uint32_t rest, is_done;   /* futexes */
    uint64_t begun;
    /* of the writing thread */
    struct trace_writer *writer;
    uint64_t definitions_written, events_written;
    bool is_broken;
} state = {.joining = PTHREAD_MUTEX_INITIALIZER};

static __thread struct {
    struct thread *thread;
    bool is_refused;
} here __attribute__((tls_model("initial-exec")));

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* nanoseconds 0: for as long as it takes */
static void futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t nanoseconds)
{
    struct timespec time = {(time_t)(nanoseconds / 1000000000u), (long)(nanoseconds % 1000000000u)};
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, nanoseconds ? &time : NULL, NULL, 0);
}

bool recorder_is_wanted(void)
{
    return config()->trace_path != NULL && !atomic_load_explicit(&state.has_failed, memory_order_relaxed);
}

/* Made by whoever comes first; the loser of a race gives his back. */
static struct definitions *definitions(void)
{
    struct definitions *made = atomic_load_explicit(&state.definitions, memory_order_acquire), *expected = NULL;
    if (made != NULL || (made = definitions_open()) == NULL) {
        return made;
    }
    if (!atomic_compare_exchange_strong(&state.definitions, &expected, made)) {
        definitions_close(made);
        return expected;
    }
    return made;
}

uint32_t recorder_name(const char *name)
{
    struct definitions *into = definitions();
    return into != NULL ? definitions_name(into, name) : 0;
}

/* ---- stacks ---- */

static void *open_library(const char *name, int flags)
{
    return driver_dlopen(name, flags);
}

static void *find_function(void *handle, const char *name)
{
    return driver_dlsym(handle, name);
}

static bool is_own_code(const void *address)
{
    extern const char __ehdr_start[] __attribute__((visibility("hidden"))),
        etext[] __attribute__((visibility("hidden")));
    return (const char *)address >= __ehdr_start && (const char *)address < etext;
}

/* Native frames, then the Python ones. */
static uint32_t add_stack(struct definitions *into, uint64_t hash, void *const *addresses, uint32_t count,
                          struct python_frames *python)
{
    struct trace_frame frames[TRACE_STACK_MOST];
    uint32_t used = 0;
    for (uint32_t i = 0; i < count && used < TRACE_STACK_MOST; i++) {
        frames[used++] = (struct trace_frame){.kind = TRACE_NATIVE, .offset = (uintptr_t)addresses[i]};
    }
    bool is_cut = python->count == 0 ? count == TRACE_STACK_MOST : python->is_cut;
    for (uint32_t i = 0; i < python->count && used < TRACE_STACK_MOST; i++) {
        frames[used++] = python_frame(into, &python->frames[i]);
    }
    return definitions_add_stack(into, hash, frames, used, is_cut);
}

/* How many calls there are up to the interpreter: what it does within itself, Python's own frames say better. */
static uint32_t native_part(void *const *addresses, uint32_t count)
{
    uint32_t part = 0;
    while (part < count && !python_owns(addresses[part])) {
        part++;
    }
    return part;
}

uint32_t recorder_stack(void)
{
    static const struct stack_linker linker = {open_library, find_function};
    void *addresses[TRACE_STACK_MOST];
    struct python_frames python;
    struct definitions *into = definitions();
    if (into == NULL) {
        return 0;
    }
    uint32_t count = stack_capture(&linker, addresses, TRACE_STACK_MOST), own = 0;
    while (own < count && is_own_code(addresses[own])) {
        own++;
    }
    python_capture(&python, addresses + own, count - own);
    if (python.count > 0) {
        count = own + native_part(addresses + own, count - own);
    }
    uint64_t hash = python_hash(stack_hash(0, addresses, count), &python);
    uint32_t number = count + python.count > 0 ? definitions_find_stack(into, hash) : 0;
    if (number == 0 && count + python.count > 0) {
        number = add_stack(into, hash, addresses + own, count - own, &python);
    }
    python_release(&python);
    return number;
}

/* ---- putting events in ---- */

static bool has_ended(const struct thread *thread)
{
    return syscall(SYS_tgkill, getpid(), thread->owner, 0) != 0 && errno == ESRCH;
}

static bool is_empty(struct thread *thread)
{
    return atomic_load(&thread->ring.end) == atomic_load(&thread->ring.begin) && atomic_load(&thread->ring.lost) == 0;
}

/* Under `joining`. */
static struct thread *left_behind(void)
{
    uint32_t count = atomic_load(&state.thread_count);
    for (uint32_t i = 0; i < count; i++) {
        struct thread *thread = atomic_load(&state.threads[i]);
        if (is_empty(thread) && has_ended(thread)) {
            return thread;
        }
    }
    return NULL;
}

static struct thread *new_thread(void)
{
    uint32_t count = atomic_load(&state.thread_count);
    size_t head = (sizeof(struct thread) + 4095) & ~(size_t)4095;
    struct thread *thread = count == RINGS_MAX ? NULL : store_reserve(head + config()->trace_ring_bytes, "the trace");
    if (thread == NULL) {
        return NULL;
    }
    ring_open(&thread->ring, (unsigned char *)thread + head, config()->trace_ring_bytes);
    atomic_store(&state.threads[count], thread);
    atomic_store(&state.thread_count, count + 1);
    return thread;
}

static struct thread *join(void)
{
    char name[17] = "";
    pthread_mutex_lock(&state.joining);
    struct thread *thread = left_behind();
    thread = thread != NULL ? thread : new_thread();
    if (thread != NULL) {
        prctl(PR_GET_NAME, name);
        thread->owner = (pid_t)syscall(SYS_gettid);
        thread->number = definitions_thread(definitions(), (uint32_t)thread->owner, name);
    }
    pthread_mutex_unlock(&state.joining);
    here.thread = thread;
    here.is_refused = thread == NULL;
    return thread;
}

void *recorder_event(enum trace_kind kind, size_t bytes, uint32_t stack)
{
    if (!recorder_is_open()) {
        return NULL;
    }
    struct thread *thread = here.thread;
    if (thread == NULL && (here.is_refused || (thread = join()) == NULL)) {
        atomic_fetch_add_explicit(&state.lost, 1, memory_order_relaxed);
        return NULL;
    }
    struct trace_event *event = ring_reserve(&thread->ring, kind, bytes);
    if (event == NULL) {
        atomic_fetch_add_explicit(&state.lost, 1, memory_order_relaxed);
        return NULL;
    }
    *event = (struct trace_event){
        .sequence = atomic_fetch_add_explicit(&state.sequence, 1, memory_order_relaxed),
        .nanoseconds = now() - state.begun,
        .thread = thread->number,
        .stack = stack,
    };
    return event;
}

static void wake_writer(uint32_t rest)
{
    if (atomic_compare_exchange_strong(&state.rest, &rest, REST_NONE)) {
        futex_wake(&state.rest);
    }
}

void recorder_commit(void)
{
    struct ring *ring = &here.thread->ring;
    ring_commit(ring);
    uint32_t rest = atomic_load(&state.rest); /* either it sees the event, or we see that it sleeps */
    if (rest == REST_SLEEP || (rest == REST_NAP && ring_is_filling(ring))) {
        wake_writer(rest);
    }
}

void recorder_give(void *memory, size_t bytes, size_t mapped)
{
    struct parcel *parcel = memory;
    parcel->bytes = bytes;
    parcel->mapped = mapped;
    if (!recorder_is_open()) {
        store_return(memory, mapped);
        return;
    }
    parcel->next = atomic_load(&state.parcels);
    while (!atomic_compare_exchange_weak(&state.parcels, &parcel->next, parcel)) {
    }
    wake_writer(atomic_load(&state.rest));
}

uint64_t recorder_lost(void)
{
    return atomic_load_explicit(&state.lost, memory_order_relaxed);
}

/* ---- the writing thread ---- */

static void write_definitions(void)
{
    size_t bytes;
    const void *records = definitions_since(definitions(), state.definitions_written, &bytes);
    trace_writer_records(state.writer, records, bytes);
    state.definitions_written += bytes;
}

static uint64_t sequence_of(const struct trace_record *record)
{
    return ((const struct trace_event *)(const void *)(record + 1))->sequence;
}

/* What was in the rings when it began, in the order of the sequence. Returns how many. */
static uint64_t write_events(void)
{
    static uint64_t limits[RINGS_MAX];
    uint32_t count = atomic_load_explicit(&state.thread_count, memory_order_acquire);
    uint64_t written = 0;
    for (uint32_t i = 0; i < count; i++) {
        limits[i] = ring_limit(&atomic_load_explicit(&state.threads[i], memory_order_acquire)->ring);
    }
    write_definitions(); /* what the events name was defined before they were made */
    for (;; written++) {
        const struct trace_record *next = NULL;
        struct ring *from = NULL;
        for (uint32_t i = 0; i < count; i++) {
            struct ring *ring = &atomic_load_explicit(&state.threads[i], memory_order_relaxed)->ring;
            const struct trace_record *record = ring_front(ring, limits[i]);
            if (record != NULL && (next == NULL || sequence_of(record) < sequence_of(next))) {
                next = record;
                from = ring;
            }
        }
        if (next == NULL) {
            return written;
        }
        trace_writer_records(state.writer, next, next->bytes);
        ring_drop(from, next);
        state.events_written++;
    }
}

static void write_losses(void)
{
    uint32_t count = atomic_load_explicit(&state.thread_count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++) {
        struct thread *thread = atomic_load_explicit(&state.threads[i], memory_order_acquire);
        uint64_t lost = atomic_exchange(&thread->ring.lost, 0);
        if (lost == 0) {
            continue;
        }
        write_definitions();
        struct trace_lost event = {.event = {.sequence = atomic_fetch_add(&state.sequence, 1),
                                             .nanoseconds = now() - state.begun,
                                             .thread = thread->number},
                                   .count = lost};
        trace_writer_event(state.writer, TRACE_LOST, &event, sizeof event);
        state.events_written++;
    }
}

static void write_parcels(void)
{
    struct parcel *newest = atomic_exchange(&state.parcels, NULL), *oldest = NULL;
    while (newest != NULL) {
        struct parcel *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    if (oldest != NULL) {
        write_definitions();
    }
    while (oldest != NULL) {
        struct parcel *next = oldest->next;
        trace_writer_records(state.writer, (const unsigned char *)oldest + RECORDER_GIVE_HEAD, oldest->bytes);
        store_return(oldest, oldest->mapped);
        oldest = next;
    }
}

static void say_failure(int error)
{
    state.is_broken = true;
    atomic_store(&state.has_failed, true);
    atomic_store(&recorder_on, false);
    say(SAY_WARNING, "the trace is cut: it cannot be written any further (error %d); the program goes on without",
        error);
}

static bool has_waiting(void)
{
    uint32_t count = atomic_load_explicit(&state.thread_count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++) {
        if (!is_empty(atomic_load_explicit(&state.threads[i], memory_order_acquire))) {
            return true;
        }
    }
    return atomic_load(&state.parcels) != NULL || atomic_load(&state.is_ending);
}

/* Long if nothing happens. */
static void rest(bool is_idle)
{
    uint32_t kind = is_idle ? REST_SLEEP : REST_NAP;
    atomic_store(&state.rest, kind); /* before it looks: see recorder_commit */
    if (atomic_load(&state.is_ending)) {
        futex_wait(&state.rest, kind, ENDING_REST_NS);
    } else if (!is_idle || !has_waiting()) {
        futex_wait(&state.rest, kind, is_idle ? 0 : RECORDER_REST_NS);
    }
    atomic_store(&state.rest, REST_NONE);
}

/* Every number of the sequence that was given out is in the file: no thread is still making an event. */
static bool is_complete(void)
{
    return state.events_written == atomic_load(&state.sequence);
}

static void close_file(void)
{
    int error = 0;
    if (is_complete()) {
        error = trace_writer_close(state.writer);
    } else {
        trace_writer_abandon(state.writer);
        say(SAY_WARNING, "the trace is cut: a thread was still making an event");
    }
    if (error != 0 && !state.is_broken) {
        say_failure(error);
    }
}

static void *write_all(void *unused)
{
    (void)unused;
    prctl(PR_SET_NAME, "reprise-trace");
    for (uint64_t end = UINT64_MAX;;) {
        bool is_ending = atomic_load(&state.is_ending);
        end = is_ending && end == UINT64_MAX ? now() + LAST_EVENTS_NS : end;
        uint64_t written = write_events();
        write_losses();
        write_parcels();
        trace_writer_flush(state.writer);
        int error = trace_writer_error(state.writer);
        if (error != 0 && !state.is_broken) {
            say_failure(error);
        }
        if (is_ending && (is_complete() || now() > end)) {
            break;
        }
        rest(written == 0);
    }
    close_file();
    atomic_store(&state.is_done, 1);
    futex_wake(&state.is_done);
    return NULL;
}

/* ---- beginning and end ---- */

static int start_thread(void)
{
    sigset_t all, before;
    pthread_t thread;
    pthread_attr_t attributes;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int error = pthread_create(&thread, &attributes, write_all, NULL);
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

bool recorder_open(const struct trace_run *run)
{
    if (!recorder_is_wanted() || definitions() == NULL) {
        return false;
    }
    struct trace_run complete = *run;
    complete.process = (uint32_t)getpid();
    complete.rank = config()->rank;
    state.begun = now();
    state.writer = recorder_file_open();
    if (state.writer == NULL) {
        atomic_store(&state.has_failed, true);
        return false;
    }
    write_definitions();
    trace_writer_run(state.writer, &complete);
    trace_writer_flush(state.writer);
    int error = start_thread();
    if (error != 0) {
        say(SAY_WARNING, "no trace: a thread for it cannot be made (error %d)", error);
        trace_writer_abandon(state.writer);
        atomic_store(&state.has_failed, true);
        return false;
    }
    atomic_store_explicit(&recorder_on, true, memory_order_release);
    return true;
}

void recorder_finish(void)
{
    if (!atomic_exchange(&recorder_on, false)) {
        return;
    }
    uint64_t end = now() + RECORDER_END_SECONDS * 1000000000ull;
    atomic_store(&state.is_ending, true);
    atomic_store(&state.rest, REST_NONE);
    futex_wake(&state.rest);
    while (atomic_load(&state.is_done) == 0 && now() < end) {
        futex_wait(&state.is_done, 0, 100000000u);
    }
    if (atomic_load(&state.is_done) == 0) {
        say(SAY_WARNING, "the trace is cut: writing its end took too long");
    }
}
