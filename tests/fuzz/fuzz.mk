# Fuzzers, always with sanitizers: build/fuzz/mutate/NAME with our own mutator, and, where clang is at hand,
# build/fuzz/guided/NAME with libFuzzer. A new tests/fuzz/fuzz_NAME.c is built without touching this file.

FUZZ_TARGETS := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_FLAGS := -std=gnu17 -O1 -g -D_GNU_SOURCE -fsanitize=address,undefined -fno-sanitize-recover=all -pthread
FUZZ_CLANG := $(shell command -v clang 2>/dev/null)
# NAME=a,b makes fewer; TIME=seconds for each.
TIME ?= 10

.PHONY: fuzz fuzzers
fuzz: fuzzers ## damaged input into every reader, with sanitizers; TIME=seconds for each, NAME=one,two
	@BUILD=$(BUILD) TIME=$(TIME) NAME=$(NAME) scripts/fuzz

fuzz_links = $(call test_links,tests/fuzz/fuzz_$(1).c) tests/fuzz/fuzz_$(1).c tests/fuzz/files.c

# $(1): folder, $(2): compiler, $(3): its own flags, $(4): target, $(5): the file that drives it
define FUZZ_RULE
$(BUILD)/fuzz/$(1)/$(4): $(patsubst %.c,$(BUILD)/fuzz/obj/$(1)/%.o,$(call fuzz_links,$(4)) $(5))
	@mkdir -p $$(@D)
	$$(Q)$(2) $$(FUZZ_FLAGS) $(if $(3),-fsanitize=fuzzer) $$^ -lm -ldl $(TRACE_LIBS) -o $$@
fuzzers: $(BUILD)/fuzz/$(1)/$(4)
endef
$(BUILD)/fuzz/obj/mutate/%.o: %.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(FUZZ_FLAGS) $(DEPENDENCIES) -c $< -o $@
$(BUILD)/fuzz/obj/guided/%.o: %.c
	@mkdir -p $(@D)
	$(Q)clang $(CPPFLAGS) $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link $(DEPENDENCIES) -c $< -o $@
# The head of the emitted C is for the C compiler of the system.
$(BUILD)/fuzz/obj/guided/tests/device/ptx_head.o: tests/device/ptx_head.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -std=gnu17 -O1 -fPIC $(DEPENDENCIES) -c $< -o $@
$(foreach target,$(FUZZ_TARGETS),$(eval $(call FUZZ_RULE,mutate,$(CC),,$(target),tests/fuzz/mutate.c)))
ifneq ($(FUZZ_CLANG),)
$(foreach target,$(FUZZ_TARGETS),$(eval $(call FUZZ_RULE,guided,clang,guided,$(target),tests/fuzz/libfuzzer.c)))
endif
-include $(shell find $(BUILD)/fuzz/obj -name '*.d' 2>/dev/null)
