# The hard programs: build/apps/hard_NAME from tests/apps/hard/hard_NAME.cu. Included by the top Makefile.

hard_names := $(patsubst tests/apps/hard/%.cu,%,$(wildcard tests/apps/hard/hard_*.cu))

.PHONY: hard
hard: $(hard_names:%=build/apps/%)
apps: hard

build/apps/hard_%: tests/apps/hard/hard_%.cu tests/apps/hard/hard.cuh
	@mkdir -p $(@D)
	$(Q)$(NVCC) $(APPS_NVCCFLAGS) -o $@ $<
