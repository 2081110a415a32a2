# The training programs: build/apps/NAME from tests/apps/*.cu. Included by the top Makefile; also usable alone,
# from the root: make -f tests/apps/apps.mk apps
# PTX only, so that any device compiles for itself; the shared runtime, as `nvcc -cudart shared` links it.

NVCC ?= nvcc
APPS_NVCCFLAGS ?= -O2 -g -std=c++17 -cudart shared -gencode arch=compute_75,code=compute_75 \
	-Xcompiler -Wall,-Wextra,-Wshadow,-pthread -I.

apps_names := resnet lstm gpt mlp hostile
apps_shared := device training options parameter elementwise reduce
apps_parts_resnet := resnet convolution batch_norm pool loss matmul optimiser
apps_parts_lstm := lstm lstm_cell loss matmul optimiser
apps_parts_gpt := gpt gpt_block attention embedding dropout layer_norm loss matmul optimiser
apps_parts_mlp := mlp parameter_table loss matmul
apps_parts_hostile := hostile hostile_buffers batch_norm loss matmul optimiser

.PHONY: apps
apps: $(apps_names:%=build/apps/%)

build/apps/obj/%.o: tests/apps/%.cu
	@mkdir -p $(@D)
	$(NVCC) $(APPS_NVCCFLAGS) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<

define apps_rule
build/apps/$(1): $(patsubst %,build/apps/obj/%.o,$(apps_parts_$(1)) $(apps_shared))
	$$(NVCC) -cudart shared -Xcompiler -pthread -o $$@ $$^
endef
$(foreach name,$(apps_names),$(eval $(call apps_rule,$(name))))

-include $(wildcard build/apps/obj/*.d)
