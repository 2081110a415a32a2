# The CPU device: build/device/libcuda.so.1 and build/device/libcudart.so.13.
# Included by the Makefile; also works alone: make -f tests/device/device.mk device

CC ?= gcc
BUILD ?= build
CUDA_HOME ?= $(patsubst %/bin/nvcc,%,$(shell command -v nvcc))
CUDA_INCLUDE ?= $(CUDA_HOME)/include

DEVICE_FLAGS := -std=gnu17 -O2 -g -fPIC -fvisibility=hidden -fno-semantic-interposition -pthread -D_GNU_SOURCE \
	-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wconversion -Werror \
	-I. -isystem $(CUDA_INCLUDE)

DEVICE_SOURCES := $(wildcard tests/device/*.c) shim/fatbin.c
DEVICE_OBJECTS := $(patsubst %.c,$(BUILD)/device/obj/%.o,$(DEVICE_SOURCES))
RUNTIME_SOURCES := $(wildcard tests/device/runtime/*.c)
RUNTIME_OBJECTS := $(patsubst %.c,$(BUILD)/device/obj/%.o,$(RUNTIME_SOURCES))

# What the management library shares with the driver: the settings, and who uses the device.
NVML_SOURCES := $(wildcard tests/device/nvml/*.c) tests/device/presence.c tests/device/settings.c
NVML_OBJECTS := $(patsubst %.c,$(BUILD)/device/obj/%.o,$(NVML_SOURCES))

JITLINK_SOURCES := $(wildcard tests/device/jitlink/*.c) tests/device/link_text.c
JITLINK_OBJECTS := $(patsubst %.c,$(BUILD)/device/obj/%.o,$(JITLINK_SOURCES))

.PHONY: device
DEVICE_LIBRARIES = libcuda.so.1 libcudart.so.13 libnvidia-ml.so.1 libnvJitLink.so.13
device: $(addprefix $(BUILD)/device/,$(DEVICE_LIBRARIES) translate)

$(BUILD)/device/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(DEVICE_FLAGS) $(SANFLAGS) $(if $(SANFLAGS),-Wno-error) -MMD -MP -c -o $@ $<

$(BUILD)/device/libcuda.so.1: $(DEVICE_OBJECTS)
	$(CC) -shared $(SANFLAGS) -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic -Wl,-z,nodelete $(DEVICE_DEFS) \
		-o $@ $(DEVICE_OBJECTS) -l:libzstd.a -lm -ldl -pthread
	ln -sf libcuda.so.1 $(BUILD)/device/libcuda.so

$(BUILD)/device/libcudart.so.13: $(RUNTIME_OBJECTS) tests/device/runtime/exports.map
	$(CC) -shared $(SANFLAGS) -Wl,-soname,libcudart.so.13 -Wl,-Bsymbolic -Wl,-z,nodelete $(DEVICE_DEFS) \
		-Wl,--version-script,tests/device/runtime/exports.map -o $@ $(RUNTIME_OBJECTS) -ldl -pthread
	ln -sf libcudart.so.13 $(BUILD)/device/libcudart.so

$(BUILD)/device/libnvidia-ml.so.1: $(NVML_OBJECTS) tests/device/nvml/exports.map
	$(CC) -shared $(SANFLAGS) -Wl,-soname,libnvidia-ml.so.1 -Wl,-Bsymbolic $(DEVICE_DEFS) \
		-Wl,--version-script,tests/device/nvml/exports.map -o $@ $(NVML_OBJECTS) -pthread
	ln -sf libnvidia-ml.so.1 $(BUILD)/device/libnvidia-ml.so

$(BUILD)/device/libnvJitLink.so.13: $(JITLINK_OBJECTS) tests/device/jitlink/exports.map
	$(CC) -shared $(SANFLAGS) -Wl,-soname,libnvJitLink.so.13 -Wl,-Bsymbolic $(DEVICE_DEFS) \
		-Wl,--version-script,tests/device/jitlink/exports.map -o $@ $(JITLINK_OBJECTS)

# A sanitizer's runtime comes with the program, so its names are open here.
DEVICE_DEFS := $(if $(SANFLAGS),,-Wl,-z,defs)

-include $(DEVICE_OBJECTS:.o=.d) $(RUNTIME_OBJECTS:.o=.d) $(NVML_OBJECTS:.o=.d) $(JITLINK_OBJECTS:.o=.d)

# The driver in one object, for unit tests that link it: /* links: tests/device/whole.c */
$(BUILD)/obj/tests/device/whole.o: $(DEVICE_OBJECTS)
	@mkdir -p $(@D)
	$(CC) -r -nostdlib -o $@ $(DEVICE_OBJECTS)

# Programs of nvcc for the device's own tests, in every form that nvcc packs them.
DEVICE_NVCC = $(NVCC) -O2 -std=c++17 -cudart shared -gencode arch=compute_75,code=compute_75
DEVICE_FORM_zstd :=
DEVICE_FORM_lz4 := --compress-mode=speed
DEVICE_FORM_plain := --compress-mode=none
DEVICE_FORM_per_thread := --default-stream per-thread
$(BUILD)/device/programs/runtime_%: tests/device/programs/runtime.cu
	@mkdir -p $(@D)
	$(DEVICE_NVCC) $(DEVICE_FORM_$*) -o $@ $<

$(BUILD)/device/programs/race: tests/device/programs/race.cu
	@mkdir -p $(@D)
	$(DEVICE_NVCC) -o $@ $<

# The translator alone, for tests/ptx/corpus.py.
TRANSLATE_SOURCES := tests/ptx/translate.c $(wildcard tests/device/ptx_*.c)
$(BUILD)/device/translate: $(patsubst %.c,$(BUILD)/device/obj/%.o,$(TRANSLATE_SOURCES))
	$(CC) $(SANFLAGS) -o $@ $^ -lm -ldl -pthread
