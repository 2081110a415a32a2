/* links: tests/unit/fake_%.c shim/hidden.c shim/proof.c shim/space.c shim/frames.c shim/frames_assign.c policy/assign.c
 * shim/streams.c shim/store.c shim/say.c */
#include "tests/unit/core.h"

#include "shim/hidden.h"
#include "shim/proof.h"

static uint32_t stream;

static void open_memory(enum fake_order order)
{
    core_open_device(2000, 2000, false, order);
    REQUIRE(space_open());
    stream = streams_number(fake_stream());
    REQUIRE(proof_open(stream));
}

static uint32_t allocate(uint64_t bytes)
{
    CUresult result;
    uint32_t index = space_allocate(bytes, stream, &result);
    REQUIRE(index != SPACE_NONE);
    REQUIRE(frames_acquire(space_place(space_get(index)->home), stream, &result));
    space_get(index)->is_fresh = false;
    core_fill(space_get(index)->base, bytes, 1, stream); /* garbage might look like pointers */
    return index;
}

static void give_up(uint32_t index)
{
    hidden_forget(space_get(index));
    space_give_place(space_end(index));
}

static CUdeviceptr base_of(uint32_t index)
{
    return space_get(index)->base;
}

static bool is_pinned(uint32_t index)
{
    return space_get(index)->is_pinned;
}

/* Does an operation that touches `first` reach `other`? */
static bool reaches(uint32_t first, uint32_t other)
{
    static struct touches touches;
    touches.count = 1;
    touches.is_overfull = false;
    touches.items[0] = (struct touch){.allocation = first};
    hidden_close(&touches);
    for (uint32_t i = 1; i < touches.count; i++) {
        REQUIRE(touches.items[i].is_hidden && touches.items[i].is_loaded);
        if (touches.items[i].allocation == other) {
            return true;
        }
    }
    return false;
}

/* Enqueues the store of a word, as a kernel would do it. */
static void store_word(CUdeviceptr at, uint64_t word)
{
    core_fill(at, 8, word, stream);
}

/* ---- copies to the device ---- */

static void an_address_in_a_copy_pins_its_allocation(const void *argument)
{
    (void)argument;
    open_memory(FAKE_AT_ONCE);
    uint32_t table = allocate(512), target = allocate(5 * CORE_FRAME), other = allocate(5 * CORE_FRAME);
    uint64_t payload[8] = {1, 2, base_of(target) + 4000, 0, ~0ull, 5};
    hidden_scan_host(payload, sizeof payload, base_of(table));
    REQUIRE(is_pinned(target) && !is_pinned(other) && !is_pinned(table));
    REQUIRE(reaches(table, target) && !reaches(table, other) && !reaches(target, table));
}
core_test(an_address_in_a_copy_pins_its_allocation)

    /* What counts is where the word lands: on a multiple of eight, on the device. */
    static void unaligned_payloads_are_read_as_they_land(const void *argument)
{
    (void)argument;
    open_memory(FAKE_AT_ONCE);
    uint32_t table = allocate(512), target = allocate(CORE_FRAME);
    unsigned char payload[64] = {0};
    uint64_t address = base_of(target);
    memcpy(payload + 5, &address, 8);
    hidden_scan_host(payload, sizeof payload, base_of(table));
    REQUIRE(!is_pinned(target));
    hidden_scan_host(payload, sizeof payload, base_of(table) + 3);
    REQUIRE(is_pinned(target));
}
core_test(unaligned_payloads_are_read_as_they_land)

    static void the_ends_of_a_payload_are_read_and_no_more(const void *argument)
{
    (void)argument;
    open_memory(FAKE_AT_ONCE);
    uint32_t table = allocate(512), first = allocate(CORE_FRAME), last = allocate(CORE_FRAME),
             after = allocate(CORE_FRAME);
    uint64_t payload[5] = {base_of(first), 0, 0, base_of(last), base_of(after)};
    hidden_scan_host(payload, 4 * 8 + 7, base_of(table));
    REQUIRE(is_pinned(first) && is_pinned(last) && !is_pinned(after));
    hidden_scan_host(payload, 0, base_of(table));
    hidden_scan_host(payload + 4, 7, base_of(table));
    REQUIRE(!is_pinned(after));
}
core_test(the_ends_of_a_payload_are_read_and_no_more)

    static void a_copy_to_somewhere_unknown_pins_too(const void *argument)
{
    (void)argument;
    open_memory(FAKE_AT_ONCE);
    uint32_t target = allocate(CORE_FRAME);
    uint64_t address = base_of(target);
    hidden_scan_host(&address, 8, 0);
    REQUIRE(is_pinned(target));
}
core_test(a_copy_to_somewhere_unknown_pins_too)

    static void addresses_of_nothing_pin_nothing(const void *argument)
{
    (void)argument;
    open_memory(FAKE_AT_ONCE);
    uint32_t table = allocate(512), gone = allocate(3 * CORE_FRAME);
    uint64_t payload[2] = {base_of(gone), 0};
    CUdeviceptr begin, end;
    frames_arena(&begin, &end);
    payload[1] = end - 8;
    give_up(gone);
    hidden_scan_host(payload, sizeof payload, base_of(table));
    REQUIRE_EQUAL(space_get(table)->first_link, 0);
    REQUIRE(space_is_valid());
}
core_test(addresses_of_nothing_pin_nothing)

    static void a_buffer_may_hold_its_own_address(const void *argument)
{
    (void)argument;
    open_memory(FAKE_AT_ONCE);
    uint32_t table = allocate(CORE_FRAME);
    uint64_t address = base_of(table) + 8;
    hidden_scan_host(&address, 8, base_of(table));
    REQUIRE(is_pinned(table));
    REQUIRE(!reaches(table, table));
}
core_test(a_buffer_may_hold_its_own_address)

    /* ---- pointers that kernels store ---- */

    static void a_stored_address_is_found_at_the_collection(const void *argument)
{
    open_memory(*(const enum fake_order *)argument);
    uint32_t table = allocate(2048), target = allocate(5 * CORE_FRAME);
    store_word(base_of(table) + 1000, base_of(target) + 12345);
    hidden_scan_device(space_get(table), stream);
    hidden_collect(stream);
    REQUIRE(is_pinned(target));
    REQUIRE(reaches(table, target));
    REQUIRE(!proof_scan_is_pending());
}

static void test_a_stored_address_is_found_at_the_collection(void **state)
{
    (void)state;
    for (enum fake_order order = FAKE_AT_ONCE; order <= FAKE_MIXED; order++) {
        assert_child(a_stored_address_is_found_at_the_collection, &order);
    }
}

static void more_pointers_than_a_scan_lists_are_found_too(const void *argument)
{
    (void)argument;
    open_memory(FAKE_LATE);
    uint32_t table = allocate(4 * CORE_FRAME), targets[60];
    for (uint32_t i = 0; i < 60; i++) {
        targets[i] = allocate(CORE_FRAME);
        store_word(base_of(table) + 64 * i, base_of(targets[i]));
    }
    hidden_scan_device(space_get(table), stream);
    hidden_collect(stream);
    for (uint32_t i = 0; i < 60; i++) {
        REQUIRE(is_pinned(targets[i]));
        REQUIRE(reaches(table, targets[i]));
    }
}
core_test(more_pointers_than_a_scan_lists_are_found_too)

    static void more_scans_than_fit_are_collected_on_the_way(const void *argument)
{
    (void)argument;
    open_memory(FAKE_LATE);
    static uint32_t tables[300], targets[300];
    for (uint32_t i = 0; i < 300; i++) {
        tables[i] = allocate(512);
        targets[i] = allocate(CORE_FRAME);
        store_word(base_of(tables[i]), base_of(targets[i]));
        hidden_scan_device(space_get(tables[i]), stream);
    }
    hidden_collect(stream);
    for (uint32_t i = 0; i < 300; i++) {
        REQUIRE(is_pinned(targets[i]));
        REQUIRE(reaches(tables[i], targets[i]) && !reaches(tables[i], targets[(i + 1) % 300]));
    }
}
core_test(more_scans_than_fit_are_collected_on_the_way)

    static void large_buffers_are_not_scanned(const void *argument)
{
    (void)argument;
    open_memory(FAKE_AT_ONCE);
    uint32_t limit = allocate(HIDDEN_SCAN_LIMIT), large = allocate(HIDDEN_SCAN_LIMIT + 8), tiny = allocate(4);
    hidden_scan_device(space_get(large), stream);
    hidden_scan_device(space_get(tiny), stream);
    REQUIRE(!proof_scan_is_pending());
    hidden_scan_device(space_get(limit), stream);
    REQUIRE(proof_scan_is_pending());
}
core_test(large_buffers_are_not_scanned)

    /* The holder is freed, and its index used again, before the scan is collected: the pin stays, the link is nobody's.
     */
    static void a_holder_may_be_gone_at_the_collection(const void *argument)
{
    (void)argument;
    open_memory(FAKE_LATE);
    uint32_t table = allocate(2048), target = allocate(CORE_FRAME);
    store_word(base_of(table), base_of(target));
    hidden_scan_device(space_get(table), stream);
    give_up(table);
    hidden_collect(stream);
    REQUIRE(is_pinned(target));
    REQUIRE(space_is_valid());
}
core_test(a_holder_may_be_gone_at_the_collection)

    static void everything_that_was_used_is_scanned_at_a_start(const void *argument)
{
    (void)argument;
    open_memory(FAKE_LATE);
    uint32_t tables[5], targets[5];
    for (uint32_t i = 0; i < 5; i++) {
        tables[i] = allocate(1024);
        targets[i] = allocate(CORE_FRAME);
        store_word(base_of(tables[i]) + 8 * i, base_of(targets[i]));
    }
    space_get(tables[4])->is_fresh = true; /* holds nothing of the program's */
    hidden_scan_everything(stream);
    hidden_collect(stream);
    for (uint32_t i = 0; i < 5; i++) {
        REQUIRE_EQUAL(is_pinned(targets[i]), i < 4);
    }
}
core_test(everything_that_was_used_is_scanned_at_a_start)

    /* ---- links ---- */

    static void links_are_followed_to_the_end(const void *argument)
{
    (void)argument;
    open_memory(FAKE_AT_ONCE);
    uint32_t chain[5];
    for (uint32_t i = 0; i < 5; i++) {
        chain[i] = allocate(CORE_FRAME);
    }
    for (uint32_t i = 0; i < 5; i++) {
        hidden_note(space_get(chain[i]), space_get(chain[(i + 1) % 5]), "a test"); /* a ring */
    }
    for (uint32_t i = 1; i < 5; i++) {
        REQUIRE(reaches(chain[0], chain[i]));
    }
}
core_test(links_are_followed_to_the_end)

    static void links_end_with_either_side(const void *argument)
{
    (void)argument;
    open_memory(FAKE_AT_ONCE);
    uint32_t holder = allocate(512), target = allocate(CORE_FRAME);
    hidden_note(space_get(holder), space_get(target), "a test");
    give_up(target);
    uint32_t again = allocate(CORE_FRAME); /* the same index, another allocation */
    REQUIRE_EQUAL(again, target);
    REQUIRE(!reaches(holder, again));
    REQUIRE(!is_pinned(again));
    hidden_note(space_get(holder), space_get(again), "a test");
    REQUIRE(reaches(holder, again));
    give_up(holder);
    REQUIRE_EQUAL(allocate(512), holder);
    REQUIRE(!reaches(holder, again));
}
core_test(links_end_with_either_side)

    /* A holder that is rewritten for ever does not use up the links. */
    static void links_are_used_again(const void *argument)
{
    (void)argument;
    open_memory(FAKE_AT_ONCE);
    uint32_t holder = allocate(512);
    for (uint32_t i = 0; i < 100000; i++) {
        CUresult result;
        uint32_t target = space_allocate(CORE_FRAME, stream, &result);
        hidden_note(space_get(holder), space_get(target), "a test");
        hidden_note(space_get(holder), space_get(target), "again");
        give_up(target);
    }
    REQUIRE(space_get(holder)->first_link <= 2);
}
core_test(links_are_used_again)

    static void a_dropped_content_that_gets_pinned_is_told_once(const void *argument)
{
    (void)argument;
    open_memory(FAKE_AT_ONCE);
    uint32_t target = allocate(CORE_FRAME), dropped = allocate(CORE_FRAME);
    hidden_note(NULL, space_get(target), "a test");
    REQUIRE(!hidden_took_dropped());
    space_get(dropped)->is_dropped = true;
    hidden_note(NULL, space_get(dropped), "a test");
    REQUIRE(hidden_took_dropped());
    REQUIRE(!hidden_took_dropped());
}
core_test(a_dropped_content_that_gets_pinned_is_told_once)

    static void too_many_touches_are_said(const void *argument)
{
    (void)argument;
    open_memory(FAKE_AT_ONCE);
    static struct touches touches;
    uint32_t holder = allocate(512);
    for (uint32_t i = 0; i < TOUCHES_MAX + 5; i++) {
        CUresult result;
        uint32_t target = space_allocate(CORE_FRAME, stream, &result);
        hidden_note(space_get(holder), space_get(target), "a test");
    }
    touches.count = 1;
    touches.items[0] = (struct touch){.allocation = holder};
    hidden_close(&touches);
    REQUIRE_EQUAL(touches.count, TOUCHES_MAX);
    REQUIRE(touches.is_overfull);
}
core_test(too_many_touches_are_said)

    int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_address_in_a_copy_pins_its_allocation),
        cmocka_unit_test(test_unaligned_payloads_are_read_as_they_land),
        cmocka_unit_test(test_the_ends_of_a_payload_are_read_and_no_more),
        cmocka_unit_test(test_a_copy_to_somewhere_unknown_pins_too),
        cmocka_unit_test(test_addresses_of_nothing_pin_nothing),
        cmocka_unit_test(test_a_buffer_may_hold_its_own_address),
        cmocka_unit_test(test_a_stored_address_is_found_at_the_collection),
        cmocka_unit_test(test_more_pointers_than_a_scan_lists_are_found_too),
        cmocka_unit_test(test_more_scans_than_fit_are_collected_on_the_way),
        cmocka_unit_test(test_large_buffers_are_not_scanned),
        cmocka_unit_test(test_a_holder_may_be_gone_at_the_collection),
        cmocka_unit_test(test_everything_that_was_used_is_scanned_at_a_start),
        cmocka_unit_test(test_links_are_followed_to_the_end),
        cmocka_unit_test(test_links_end_with_either_side),
        cmocka_unit_test(test_links_are_used_again),
        cmocka_unit_test(test_a_dropped_content_that_gets_pinned_is_told_once),
        cmocka_unit_test(test_too_many_touches_are_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
