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
CFLAGS += -std=gnu17 $(OPT) -g -fno-lto -pthread $(WARNINGS) $(SANITIZE)
DEPENDENCIES = -MMD -MP
SHIM_FLAGS = -D__CUDA_API_VERSION_INTERNAL= -fPIC -fvisibility=hidden -ftls-model=initial-exec -ffunction-sections \
             -fdata-sections -fno-plt $(WHOLE)
COMPILE = $(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(DEPENDENCIES)
# The preloaded library is optimised as a whole: a launch passes some thirty small functions of a dozen files. Objects
# hold ordinary code too, which everything else links. Not where symbols are named in assembly.
WHOLE = $(if $(SAN),,-O3 -flto=auto -ffat-lto-objects)

SHIM_SOURCES := $(wildcard shim/*.c)
TRACE_SOURCES := $(filter-out trace/main.c,$(wildcard trace/*.c))
# What only the command line needs: it reads with libraries that have no place in somebody else's process.
READER_SOURCES := $(filter trace/html%.c trace/kinds.c trace/model%.c trace/output.c trace/page.c trace/perfetto%.c \
                    trace/report%.c trace/sqlite.c trace/symbols%.c trace/terminal.c trace/verb%.c trace/words.c, \
                    $(TRACE_SOURCES))
RECORDER_SOURCES := $(filter-out $(READER_SOURCES),$(TRACE_SOURCES))
POLICY_SOURCES := $(filter-out policy/main.c,$(wildcard policy/*.c))
UNIT_TESTS := $(patsubst tests/unit/%.c,%,$(wildcard tests/unit/test_*.c))

object = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
LIBRARY_OBJECTS = $(call object,$(SHIM_SOURCES) $(RECORDER_SOURCES) $(POLICY_SOURCES)) \
                  $(if $(wildcard shim/kernels.cu),$(BUILD)/obj/gen/kernels_ptx.o)

.PHONY: check-frameworks check-browser check-perfetto bench-plan help all library trace demo check check-gpu lint format \
        bench install uninstall clean unit doors setup print-cuda-home
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
# Every error code of the driver, for the test of their names.
$(BUILD)/gen/driver_errors.def: $(CUDA_HOME)/include/cuda.h
	@mkdir -p $(@D)
	@sed -n '/^typedef enum cudaError_enum/,/^} CUresult/s/^ *\(CUDA_[A-Z0-9_]*\) *=.*/ERROR(\1)/p' $< > $@
$(BUILD)/obj/tests/unit/test_device_procaddress.o: $(BUILD)/gen/driver_errors.def
$(BUILD)/obj/tests/unit/test_device_procaddress.o: CPPFLAGS += -I$(BUILD)
# Look-ups come before a sanitizer has set itself up: it makes some of its own.
$(BUILD)/obj/shim/doors.o $(BUILD)/obj/shim/linker.o: SANITIZE =
$(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard shim/doors*.c shim/driver*.c)): WHOLE =

$(BUILD)/obj/trace/%.o: trace/%.c
	@mkdir -p $(@D)
	$(COMPILE) -fPIC -fvisibility=hidden -ftls-model=initial-exec -ffunction-sections -fdata-sections $(WHOLE) -c $< -o $@

$(BUILD)/obj/policy/%.o: policy/%.c
	@mkdir -p $(@D)
	$(COMPILE) -fPIC -fvisibility=hidden -ffunction-sections -fdata-sections $(WHOLE) -c $< -o $@

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
	$(Q)$(CC) $(filter-out -fno-lto,$(CFLAGS)) $(WHOLE) $(LIBRARY_LINK) $(LIBRARY_OBJECTS) $(LIBRARY_LIBS) -o $@

# What the report's other forms hold, as text in C: the page of HTML and the tables of SQLite.
HTML_SOURCES = trace/html/page.html trace/html/style.css \
               $(addprefix trace/html/,data.js series.js charts.js interact.js curve.js flame.js table.js main.js)
$(BUILD)/gen/html_page.txt: $(HTML_SOURCES)
	@mkdir -p $(@D)
	@cat $(filter %.js,$(HTML_SOURCES)) > $@.js
	@sed -e '/^@STYLE@$$/{r trace/html/style.css' -e 'd}' -e '/^@SCRIPT@$$/{r $@.js' -e 'd}' trace/html/page.html > $@
$(BUILD)/gen/sqlite_tables.txt: trace/sqlite_tables.sql
	@mkdir -p $(@D)
	@cp $< $@
$(BUILD)/gen/%.c: $(BUILD)/gen/%.txt
	@{ echo 'extern const char $*[];'; echo 'const char $*[] = {'; \
	   od -An -v -tx1 $< | sed 's/ \([0-9a-f][0-9a-f]\)/0x\1,/g'; echo '0};'; } > $@
$(BUILD)/obj/gen/%.o: $(BUILD)/gen/%.c
	@mkdir -p $(@D)
	$(COMPILE) -c $< -o $@
# Perfetto's messages: made by protobuf-c, which does not know our warnings.
$(BUILD)/gen/trace/perfetto.pb-c.c: trace/perfetto.proto
	@mkdir -p $(@D)
	$(Q)protoc-c --c_out=$(BUILD)/gen $<
$(BUILD)/gen/trace/perfetto.pb-c.h: $(BUILD)/gen/trace/perfetto.pb-c.c
$(BUILD)/obj/gen/trace/perfetto.pb-c.o: $(BUILD)/gen/trace/perfetto.pb-c.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -I$(BUILD)/gen -std=gnu17 $(OPT) -g -c $< -o $@
$(BUILD)/obj/trace/perfetto.o: $(BUILD)/gen/trace/perfetto.pb-c.h
$(BUILD)/obj/trace/perfetto.o: CPPFLAGS += -I$(BUILD)/gen
GENERATED_OBJECTS = $(addprefix $(BUILD)/obj/gen/,html_page.o sqlite_tables.o trace/perfetto.pb-c.o)

# What the trace's reader needs: symbols and lines of code, C++ names, compression.
TRACE_LIBS = -Wl,--as-needed -ldw -lelf -lstdc++ -l:libzstd.a

# --- command line ----------------------------------------------------------------------------------
ifneq ($(wildcard trace/main.c),)
trace: $(BUILD)/reprise-trace
$(BUILD)/reprise-trace: $(call object,trace/main.c $(TRACE_SOURCES) $(POLICY_SOURCES)) $(GENERATED_OBJECTS)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $^ -Wl,--gc-sections $(TRACE_LIBS) -lm -lsqlite3 -l:libprotobuf-c.a -o $@
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

links_line = $(shell awk '/^\/\* links:/ { on = 1 } on { print } /\*\// { on = 0 }' $(1) | \
    sed 's|^/\* links:||; s|\*/.*||; s|^ \* ||' | tr '\n' ' ')
# The files that a test or fuzzer $(1) names in its first lines.
test_links = $(filter-out %/main.c,$(foreach link,$(call links_line,$(1)),$(if $(findstring %,$(link)),$(wildcard $(subst %,*,$(link))),$(link))))
define UNIT_RULE
$(BUILD)/unit/$(1): $(BUILD)/obj/tests/unit/$(1).o $(call object,$(call test_links,tests/unit/$(1).c)) tests/unit/$(1).c
	@mkdir -p $$(@D)
	$$(Q)$$(CC) $$(CFLAGS) $$(filter %.o,$$^) -Wl,--gc-sections -lcmocka -lm -ldl $(TRACE_LIBS) -o $$@
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

check-browser: ## clicks through the report's page in Chromium (installs it where apt can)
	@scripts/setup --browser
	@$(MAKE) --no-print-directory -s all $(BUILD)/bench/make_trace
	@BUILD=$(BUILD) tests/e2e/browser.py --must

check-perfetto: ## the report's trace against Perfetto's published format (from PyPI, into build/)
	@$(MAKE) --no-print-directory -s all $(BUILD)/bench/make_trace
	@BUILD=$(BUILD) tests/e2e/perfetto.py --must

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
	$(Q)$(CC) $(CFLAGS) $^ -Wl,--gc-sections $(TRACE_LIBS) -lm -o $@
$(BUILD)/bench/exhaustive: tests/bench/exhaustive.c
	@mkdir -p $(@D)
	$(COMPILE) $< -o $@

bench-plan: ## the planner: what is asked and what is seen, side by side (minutes; QUICK=1: a part of it)
	@$(MAKE) --no-print-directory -s trace $(BUILD)/bench/bench_policy $(BUILD)/bench/exhaustive
	@BUILD=$(BUILD) scripts/bench_plan $(if $(QUICK),--quick)

bench: ## overheads against the do-nothing twin, plan quality
	@$(MAKE) --no-print-directory -s all doors
	@BUILD=$(BUILD) scripts/bench

# Everything that `make install` puts in place; `make uninstall` takes the same away.
INSTALL_ROOT = $(DESTDIR)$(PREFIX)
INSTALL_LIBRARY = $(INSTALL_ROOT)/lib/reprise
INSTALL_SHARED = share/man/man1/reprise.1 share/bash-completion/completions/reprise \
                 share/zsh/site-functions/_reprise share/fish/vendor_completions.d/reprise.fish

install: library trace $(if $(wildcard tests/device/device.mk),device) ## install to $(DESTDIR)$(PREFIX)
	$(Q)install -d "$(INSTALL_ROOT)/bin" "$(INSTALL_LIBRARY)" $(foreach file,$(INSTALL_SHARED),"$(INSTALL_ROOT)/$(dir $(file))")
	$(Q)install -m 755 scripts/reprise "$(INSTALL_ROOT)/bin/reprise"
	$(Q)install -m 755 $(BUILD)/libreprise.so $(BUILD)/reprise-trace $(BUILD)/reprise-policy "$(INSTALL_LIBRARY)/"
	$(Q)if [ -d $(BUILD)/device ]; then install -d "$(INSTALL_LIBRARY)/device" && \
	    cp -a $(BUILD)/device/lib*.so* "$(INSTALL_LIBRARY)/device/"; fi
	$(Q)install -m 644 scripts/reprise.1 "$(INSTALL_ROOT)/share/man/man1/reprise.1"
	$(Q)install -m 644 scripts/completion/reprise.bash "$(INSTALL_ROOT)/share/bash-completion/completions/reprise"
	$(Q)install -m 644 scripts/completion/_reprise "$(INSTALL_ROOT)/share/zsh/site-functions/_reprise"
	$(Q)install -m 644 scripts/completion/reprise.fish "$(INSTALL_ROOT)/share/fish/vendor_completions.d/reprise.fish"

uninstall: ## take away what `make install` put to $(DESTDIR)$(PREFIX)
	$(Q)rm -f "$(INSTALL_ROOT)/bin/reprise" $(foreach file,$(INSTALL_SHARED),"$(INSTALL_ROOT)/$(file)")
	$(Q)rm -f "$(INSTALL_LIBRARY)/libreprise.so" "$(INSTALL_LIBRARY)/reprise-trace" "$(INSTALL_LIBRARY)/reprise-policy"
	$(Q)rm -f $(foreach name,$(DEVICE_LIBRARIES),"$(INSTALL_LIBRARY)"/device/$(basename $(name))*)
	$(Q)rmdir "$(INSTALL_LIBRARY)/device" "$(INSTALL_LIBRARY)" 2>/dev/null || true

clean: ## remove what was built (the installed toolkit stays)
	rm -rf $(BUILD)/obj $(BUILD)/gen $(BUILD)/unit $(BUILD)/device $(BUILD)/apps $(BUILD)/doors $(BUILD)/san-* \
	    $(BUILD)/*.so $(BUILD)/reprise-*

print-cuda-home:
	@echo $(CUDA_HOME)

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
