# The door tests: programs that are not aware of us, a driver that does next to nothing, and the shim over an engine
# that decides nothing (also the floor for benchmarks).

DOORS = $(BUILD)/doors
DOOR_SOURCES := trace/size.c $(addprefix shim/,driver.c driver_stubs.c doors.c doors_entries.c linker.c gate.c say.c config.c \
    launch.c functions.c arguments.c touch.c outside.c store.c fatbin.c) \
    $(wildcard shim/code*.c) $(wildcard shim/hook_*.c)
DOOR_OBJECTS = $(call object,$(DOOR_SOURCES) tests/doors/engine_idle.c)

$(BUILD)/obj/tests/doors/engine_idle.o: CPPFLAGS += -D__CUDA_API_VERSION_INTERNAL= -fvisibility=hidden
$(BUILD)/obj/tests/doors/fake_cuda.o: CPPFLAGS += -D__CUDA_API_VERSION_INTERNAL=
$(BUILD)/obj/tests/doors/program.o: CPPFLAGS += -D__CUDA_API_VERSION_INTERNAL=

$(DOORS)/libreprise_idle.so: $(DOOR_OBJECTS) shim/exports.map
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(LIBRARY_LINK) $(DOOR_OBJECTS) $(LIBRARY_LIBS) -o $@

# The same without optimisation: the jumps must not depend on it.
$(DOORS)/libreprise_idle_O0.so: $(DOOR_OBJECTS) shim/exports.map
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -I$(BUILD) $(filter-out $(SANITIZE),$(CFLAGS)) -O0 $(SHIM_FLAGS) $(LIBRARY_LINK) $(DOOR_SOURCES) \
	    tests/doors/engine_idle.c $(LIBRARY_LIBS) -o $@

$(DOORS)/cuda.map:
	@mkdir -p $(@D)
	@echo 'libcuda.so.1 { *; };' > $@

# Not instrumented: they stand for other people's code.
PLAIN_CC = $(CC) $(CPPFLAGS) $(filter-out $(SANITIZE),$(CFLAGS)) -D__CUDA_API_VERSION_INTERNAL= -fPIC
$(DOORS)/driver/libcuda.so.1: tests/doors/fake_cuda.c $(DOORS)/cuda.map
	@mkdir -p $(@D)
	$(Q)$(PLAIN_CC) -shared -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic -Wl,--version-script=$(DOORS)/cuda.map $< -ldl -o $@
	@ln -sf libcuda.so.1 $(@D)/libcuda.so
$(DOORS)/driver_calls_back/libcuda.so.1: tests/doors/fake_cuda.c $(DOORS)/cuda.map
	@mkdir -p $(@D)
	$(Q)$(PLAIN_CC) -DCALLS_BACK -shared -Wl,-soname,libcuda.so.1 -Wl,--version-script=$(DOORS)/cuda.map $< -ldl -o $@

$(DOORS)/program: tests/doors/program.c
	@mkdir -p $(@D)
	$(Q)$(PLAIN_CC) $< -ldl -o $@
$(DOORS)/direct: tests/doors/direct.c $(DOORS)/driver/libcuda.so.1
	$(Q)$(CC) $(CPPFLAGS) $(filter-out $(SANITIZE),$(CFLAGS)) $< -L$(DOORS)/driver -lcuda -o $@
$(DOORS)/libother.so: tests/doors/other_shim.c
	@mkdir -p $(@D)
	$(Q)$(PLAIN_CC) -shared $< -ldl -o $@
$(DOORS)/libother_dlsym.so: tests/doors/other_shim.c
	@mkdir -p $(@D)
	$(Q)$(PLAIN_CC) -DOVERRIDES_DLSYM -shared $< -ldl -o $@
$(DOORS)/libneighbour.so: tests/doors/neighbour.c
	@mkdir -p $(@D)
	$(Q)$(PLAIN_CC) -shared $< -ldl -o $@
$(DOORS)/libchain.so: tests/doors/chain.c
	@mkdir -p $(@D)
	$(Q)$(PLAIN_CC) -shared $< -ldl -o $@

# Needs the CPU device: its runtime library, to link with and to run on.
# The program itself is never sanitized: under SAN it is linked with the plain runtime, which is built first.
ifneq ($(BUILD),build)
build/device/libcudart.so.13:
	$(Q)$(MAKE) --no-print-directory -s SAN= BUILD=build device
endif

$(DOORS)/runtime: tests/doors/runtime.cu build/device/libcudart.so.13
	@mkdir -p $(@D)
	$(Q)$(NVCC) -cudart shared -gencode arch=compute_75,code=compute_75 -L build/device $< -o $@

doors: $(addprefix $(DOORS)/,libreprise_idle.so libreprise_idle_O0.so driver/libcuda.so.1 \
    driver_calls_back/libcuda.so.1 program direct libother.so libother_dlsym.so libneighbour.so libchain.so runtime) ## build the door tests

# What `make bench` measures with.
$(DOORS)/null/libcuda.so.1: tests/bench/null_driver.c
	@mkdir -p $(@D)
	$(Q)$(PLAIN_CC) -fno-plt -shared -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic $< -o $@
	@ln -sf libcuda.so.1 $(@D)/libcuda.so
$(DOORS)/calls: tests/bench/calls.c $(DOORS)/null/libcuda.so.1
	$(Q)$(CC) $(CPPFLAGS) $(filter-out $(SANITIZE),$(CFLAGS)) $< -L$(DOORS)/null -lcuda -o $@
doors: $(DOORS)/calls

# Made-up traces of any length: make_trace OUT RECORDS [SEED [cut|lossy]].
$(BUILD)/bench/make_trace: $(call object,tests/bench/make_trace.c trace/file.c trace/records.c trace/records_events.c)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $^ -lm -o $@
doors: $(BUILD)/bench/make_trace

# What the recording tests look into traces with.
$(BUILD)/e2e/show_trace: $(call object,tests/e2e/show_trace.c trace/symbols.c trace/file.c trace/records.c trace/records_events.c)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $^ $(TRACE_LIBS) -lm -o $@
doors: $(BUILD)/e2e/show_trace
