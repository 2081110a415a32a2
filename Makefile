# Reprise. `make help` lists the targets; everything built goes to $(BUILD).
#
# A new file in shim/, trace/ or policy/ is built without touching this file. A unit test is a file
# tests/unit/test_NAME.c whose first lines hold `/* links: shim/a.c policy/b.c */`.

SAN ?=
comma := ,
BUILD ?= build$(if $(SAN),/san-$(subst $(comma),-,$(SAN)))
PREFIX ?= /usr/local
CC = gcc
OPT ?= -O2

NVCC ?= $(firstword $(wildcard build/toolkit/bin/nvcc) $(shell command -v nvcc 2>/dev/null) nvcc)
cuda_homes = build/toolkit $(patsubst %/bin/nvcc,%,$(realpath $(NVCC))) /usr/local/cuda
CUDA_HOME ?= $(firstword $(foreach home,$(cuda_homes),$(if $(wildcard $(home)/include/cuda.h),$(home))) /usr/local/cuda)

# V=1 shows the commands.
Q = $(if $(V),,@)
WARNINGS = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wconversion -Werror
# A sanitizer's extra code makes the compiler warn of what cannot be.
SANITIZE = $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer -Wno-error)
CPPFLAGS += -I. -isystem $(CUDA_HOME)/include -D_GNU_SOURCE
CFLAGS += -std=gnu17 $(OPT) -g -pthread $(WARNINGS) $(SANITIZE)
DEPENDENCIES = -MMD -MP
SHIM_FLAGS = -D__CUDA_API_VERSION_INTERNAL= -fPIC -fvisibility=hidden -ftls-model=initial-exec -ffunction-sections \
             -fdata-sections -fno-plt
COMPILE = $(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(DEPENDENCIES)

SHIM_SOURCES := $(wildcard shim/*.c)
TRACE_SOURCES := $(filter-out trace/main.c,$(wildcard trace/*.c))
POLICY_SOURCES := $(filter-out policy/main.c,$(wildcard policy/*.c))
UNIT_TESTS := $(patsubst tests/unit/%.c,%,$(wildcard tests/unit/test_*.c))

object = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
LIBRARY_OBJECTS = $(call object,$(SHIM_SOURCES) $(TRACE_SOURCES) $(POLICY_SOURCES)) \
                  $(if $(wildcard shim/kernels.cu),$(BUILD)/obj/gen/kernels_ptx.o)

.PHONY: check-frameworks bench-plan help all library trace demo check check-gpu lint format bench install clean unit doors setup print-cuda-home
.DELETE_ON_ERROR:
.SECONDARY:

all: ## build the library, the CPU device, the command line tools and the test programs

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 24

library: $(BUILD)/libreprise.so ## build build/libreprise.so only
all: library trace

# --- the preloaded library -------------------------------------------------------------------------
$(BUILD)/obj/shim/%.o: shim/%.c
	@mkdir -p $(@D)
	$(COMPILE) $(SHIM_FLAGS) -c $< -o $@

# The hooked names in the order of strcmp, for the look-up in doors.c.
$(BUILD)/gen/hooks_by_name.def: shim/driver.def
	@mkdir -p $(@D)
	@sed -n 's/^FN(\(cu[A-Za-z0-9_]*\), [0-9]*, HOOK).*/\1/p' $< | LC_ALL=C sort | sed 's/.*/HOOKED(&)/' > $@
$(BUILD)/obj/shim/doors.o: $(BUILD)/gen/hooks_by_name.def
$(BUILD)/obj/shim/doors.o: CPPFLAGS += -I$(BUILD)
# How many parameters each driver function has, for the test that calls all hooks.
$(BUILD)/gen/driver_arity.def: $(CUDA_HOME)/include/cuda.h
	@mkdir -p $(@D)
	@echo '#include <cuda.h>' | $(CC) -E -P $(CPPFLAGS) -D__CUDA_API_VERSION_INTERNAL= -x c - | tr '\n' ' ' | tr ';' '\n' | \
	    sed -n 's/^ *CUresult *\(cu[A-Za-z0-9_]*\) *(\(.*\)) *$$/\1(\2/p' | sort -u | awk -F'[(]' \
	    '{ n = gsub(/,/, ",", $$2) + 1; if ($$2 == "void") n = 0; print "ARITY(" $$1 ", " n ")" }' > $@
$(BUILD)/obj/tests/unit/test_hooks.o: $(BUILD)/gen/driver_arity.def
$(BUILD)/obj/tests/unit/test_hooks.o: CPPFLAGS += -I$(BUILD)
# Look-ups come before a sanitizer has set itself up: it makes some of its own.
$(BUILD)/obj/shim/doors.o $(BUILD)/obj/shim/linker.o: SANITIZE =

$(BUILD)/obj/trace/%.o: trace/%.c
	@mkdir -p $(@D)
	$(COMPILE) -fPIC -fvisibility=hidden -ftls-model=initial-exec -ffunction-sections -fdata-sections -c $< -o $@

$(BUILD)/obj/policy/%.o: policy/%.c
	@mkdir -p $(@D)
	$(COMPILE) -fPIC -fvisibility=hidden -ffunction-sections -fdata-sections -c $< -o $@

# The version is lowered so that older drivers take it: nothing newer is used.
$(BUILD)/gen/kernels.ptx: shim/kernels.cu shim/kernels.h
	@mkdir -p $(@D)
	$(Q)$(NVCC) -ptx -arch=compute_75 -I. $< -o $@
	@sed -i 's/^\.version .*/.version 6.4/' $@

# PTX ends in a zero byte, as cuModuleLoadData wants it.
$(BUILD)/gen/kernels_ptx.c: $(BUILD)/gen/kernels.ptx
	@{ echo 'extern const char reprise_kernels_ptx[];'; echo 'const char reprise_kernels_ptx[] = {'; \
	   od -An -v -tx1 $< | sed 's/ \([0-9a-f][0-9a-f]\)/0x\1,/g'; echo '0};'; } > $@

$(BUILD)/obj/gen/kernels_ptx.o: $(BUILD)/gen/kernels_ptx.c
	@mkdir -p $(@D)
	$(COMPILE) $(SHIM_FLAGS) -c $< -o $@

LIBRARY_LINK = -shared -Wl,-soname,libreprise.so -Wl,--version-script=shim/exports.map -Wl,-z,defs -Wl,-z,nodelete \
               -Wl,-z,now -Wl,-z,relro -Wl,--gc-sections -Wl,--as-needed -Wl,--exclude-libs,ALL
LIBRARY_LIBS = -ldl -lm -l:libzstd.a

$(BUILD)/libreprise.so: $(LIBRARY_OBJECTS) shim/exports.map
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(LIBRARY_LINK) $(LIBRARY_OBJECTS) $(LIBRARY_LIBS) -o $@

# --- command line ----------------------------------------------------------------------------------
ifneq ($(wildcard trace/main.c),)
trace: $(BUILD)/reprise-trace
$(BUILD)/reprise-trace: $(call object,trace/main.c $(TRACE_SOURCES) $(POLICY_SOURCES))
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $^ -Wl,--gc-sections -Wl,--as-needed -ldw -lelf -lstdc++ -lm -l:libzstd.a -o $@
endif
ifneq ($(wildcard policy/main.c),)
trace: $(BUILD)/reprise-policy
$(BUILD)/reprise-policy: $(call object,policy/main.c $(POLICY_SOURCES))
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $^ -lm -o $@
endif
trace:

# --- tests -----------------------------------------------------------------------------------------
$(BUILD)/obj/tests/%.o: tests/%.c
	@mkdir -p $(@D)
	$(COMPILE) -fPIC $(if $(filter unit/%,$*),-D__CUDA_API_VERSION_INTERNAL=) -c $< -o $@

links_line = $(shell awk '/^\/\* links:/ { on = 1 } on { print } /\*\// { on = 0 }' tests/unit/$(1).c | \
    sed 's|^/\* links:||; s|\*/.*||; s|^ \* ||' | tr '\n' ' ')
test_links = $(filter-out %/main.c,$(foreach link,$(call links_line,$(1)),$(if $(findstring %,$(link)),$(wildcard $(subst %,*,$(link))),$(link))))
define UNIT_RULE
$(BUILD)/unit/$(1): $(BUILD)/obj/tests/unit/$(1).o $(call object,$(call test_links,$(1))) tests/unit/$(1).c
	@mkdir -p $$(@D)
	$$(Q)$$(CC) $$(CFLAGS) $$(filter %.o,$$^) -Wl,--gc-sections -lcmocka -lm -l:libzstd.a -ldl -o $$@
endef
$(foreach test,$(UNIT_TESTS),$(eval $(call UNIT_RULE,$(test))))
unit: $(UNIT_TESTS:%=$(BUILD)/unit/%) ## build the unit tests

SANFLAGS = $(SANITIZE)
-include tests/device/device.mk
-include tests/apps/apps.mk
-include tests/apps/hard/hard.mk
-include tests/doors/doors.mk
-include tests/fuzz/fuzz.mk
all: $(if $(wildcard tests/device/device.mk),device) $(if $(wildcard tests/apps/apps.mk),apps)

# --- doing things ----------------------------------------------------------------------------------
setup: ## install what is missing (quick when nothing is)
	@scripts/setup

demo: setup ## a network under a third of its memory, on the CPU device
	@$(MAKE) --no-print-directory -s all
	@scripts/demo

check: setup ## all tests that need no GPU; SAN=address,undefined or SAN=thread for sanitizers
	@$(MAKE) --no-print-directory -s all unit doors
	@BUILD=$(BUILD) SAN=$(SAN) scripts/check

check-gpu: ## the end-to-end programs on a real driver
	@$(MAKE) --no-print-directory -s all
	@BUILD=$(BUILD) scripts/check --gpu

check-frameworks: ## frameworks from PyPI on the CPU device, bare and under a cap (minutes)
	@$(MAKE) --no-print-directory -s all
	@BUILD=$(BUILD) tests/frameworks/run.py

lint: $(BUILD)/gen/hooks_by_name.def ## format, arrows between folders, sizes, shell; TIDY=1: clang-tidy too
	@scripts/lint $(if $(TIDY),--tidy)

format: ## clang-format all C files
	@clang-format -i $$(find shim trace policy tests -name '*.[ch]' -not -path 'tests/unit/samples/*' \
	    -not -name fatbin_samples.h)

$(BUILD)/bench/bench_policy: $(call object,tests/bench/bench_policy.c $(POLICY_SOURCES) $(TRACE_SOURCES))
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $^ -Wl,--gc-sections -Wl,--as-needed -ldw -lelf -lstdc++ -lm -l:libzstd.a -o $@
$(BUILD)/bench/exhaustive: tests/bench/exhaustive.c
	@mkdir -p $(@D)
	$(COMPILE) $< -o $@

bench-plan: ## the planner: what is asked and what is seen, side by side (minutes; QUICK=1: a part of it)
	@$(MAKE) --no-print-directory -s trace $(BUILD)/bench/bench_policy $(BUILD)/bench/exhaustive
	@BUILD=$(BUILD) scripts/bench_plan $(if $(QUICK),--quick)

bench: ## overheads against the do-nothing twin, plan quality
	@$(MAKE) --no-print-directory -s all doors
	@BUILD=$(BUILD) scripts/bench

install: library trace ## install to $(DESTDIR)$(PREFIX)
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/reprise
	install -m 755 $(BUILD)/libreprise.so $(DESTDIR)$(PREFIX)/lib/reprise/
	$(if $(wildcard trace/main.c),install -m 755 $(BUILD)/reprise-trace $(DESTDIR)$(PREFIX)/lib/reprise/)
	if [ -d $(BUILD)/device ]; then install -d $(DESTDIR)$(PREFIX)/lib/reprise/device && \
	    cp -a $(BUILD)/device/lib*.so* $(DESTDIR)$(PREFIX)/lib/reprise/device/; fi
	install -m 755 scripts/reprise $(DESTDIR)$(PREFIX)/bin/reprise

clean: ## remove what was built (the installed toolkit stays)
	rm -rf $(BUILD)/obj $(BUILD)/gen $(BUILD)/unit $(BUILD)/device $(BUILD)/apps $(BUILD)/doors $(BUILD)/san-* \
	    $(BUILD)/*.so $(BUILD)/reprise-*

print-cuda-home:
	@echo $(CUDA_HOME)

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
