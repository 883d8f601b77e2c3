# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# bpf/*.bpf.c -> one object each -> linked by bpftool -> skeleton for user space. Those of
# BPF_ALONE are not linked with the others: each has a skeleton of its own.
# Kernel types are CO-RE and arch neutral (vmlinux/); only the register macros of libbpf's
# headers differ, hence one build for each arch.

# The linker (libbpf 1.1) wants a map's definition before its extern declarations.
BPF_ALONE := bpf/steer.bpf.c
BPF_LINKED := bpf/maps.bpf.c $(filter-out bpf/maps.bpf.c $(BPF_ALONE),\
	$(sort $(wildcard bpf/*.bpf.c)))
BPF_SRCS := $(BPF_LINKED) $(BPF_ALONE)
SKEL := $(O)/include/sluice.skel.h $(BPF_ALONE:bpf/%.bpf.c=$(O)/include/%.skel.h)

# <linux/types.h> needs asm/types.h, which Debian keeps below the host's triplet. Its
# types are the same on all 64-bit arches, so the host's serves every target.
ASM_DIR := $(firstword $(wildcard /usr/include/$(HOST_ARCH)-linux-gnu /usr/include))

BPF_CFLAGS := -target bpf -mcpu=v3 -O2 -g -std=gnu11 \
	-Wall -Wextra -Wshadow -Wstrict-prototypes -Wundef -Wno-unused-parameter \
	$(if $(filter 1,$(WERROR)),-Werror) \
	-Iinclude -Ivmlinux -Ibpf -idirafter $(ASM_DIR)

$(eval $(call stamp,$(O)/bpf.flags,$(CLANG) $(BPF_CFLAGS) $(BPF_SRCS)))

# $(1): directory of the objects, $(2): libbpf's name of the arch
define bpf_rules
$(1)/%.bpf.o: bpf/%.bpf.c $(O)/bpf.flags
	$$(call say,BPF,$$@)
	@mkdir -p $$(@D)
	$$(Q)$$(CLANG) $$(BPF_CFLAGS) -D__TARGET_ARCH_$(2) -MMD -MP -c -o $$@ $$<

$(1)/sluice.bpf.o: $(BPF_LINKED:bpf/%.c=$(1)/%.o)
	$$(call say,BPFLINK,$$@)
	$$(Q)$$(BPFTOOL) gen object $$@ $$^

-include $(wildcard $(1)/*.d)
endef

BPF_NAME_x86_64 := x86
BPF_NAME_aarch64 := arm64
BPF_ARCHES := x86_64 aarch64
ifeq ($(BPF_NAME_$(ARCH)),)
$(error ARCH=$(ARCH) is not known: use one of $(BPF_ARCHES))
endif

# The objects of ARCH in $(O)/bpf go into sluice; the others only show that they build.
bpf_dir = $(O)/bpf$(if $(filter-out $(ARCH),$(1)),-$(1))
$(foreach arch,$(BPF_ARCHES),\
	$(eval $(call bpf_rules,$(call bpf_dir,$(arch)),$(BPF_NAME_$(arch)))))

$(SKEL): $(O)/include/%.skel.h: $(O)/bpf/%.bpf.o
	$(call say,SKEL,$@)
	@mkdir -p $(@D)
	$(Q)$(BPFTOOL) gen skeleton $< name $*_bpf >$@

.PHONY: bpf-all-arch
bpf-all-arch: $(foreach arch,$(BPF_ARCHES),$(addprefix $(call bpf_dir,$(arch))/,\
	sluice.bpf.o $(BPF_ALONE:bpf/%.c=%.o))) ## Build the BPF object for every arch
	@:
