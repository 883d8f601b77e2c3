# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# selftests/unit	no root needed		selftests/common is linked into both
# selftests/system	root			and uses sluice and sl-load as programs
# selftests/load	sl-load, the workload that the system tests run
# selftests/fuzz	fuzz_NAME.c, seeds in corpus/NAME/
# selftests/model	the protocol of sessions, for spin
# `make check` ends with the test runner's own summary: nothing may print after it.

COMMON_SRCS := $(sort $(wildcard selftests/common/*.c))
UNIT_SRCS := $(sort $(wildcard selftests/unit/*.c)) $(COMMON_SRCS)
SYSTEM_SRCS := $(sort $(wildcard selftests/system/*.c)) $(COMMON_SRCS)
LOAD_SRCS := $(sort $(wildcard selftests/load/*.c))
FUZZ_NAMES := $(sort $(patsubst selftests/fuzz/fuzz_%.c,%,$(wildcard selftests/fuzz/fuzz_*.c)))

UNIT := $(OUT)/selftests/unit
SYSTEM := $(OUT)/selftests/system
SL_LOAD := $(OUT)/sl-load

TEST_OBJS := $(sort $(call obj,$(UNIT_SRCS) $(SYSTEM_SRCS) $(LOAD_SRCS)))
$(TEST_OBJS): CPPFLAGS_ALL += -Iselftests $(TEST_CFLAGS)
$(TEST_OBJS): | need-test

$(eval $(call program,$(UNIT),$(UNIT_SRCS),$$(TEST_LIBS)))
$(eval $(call program,$(SYSTEM),$(SYSTEM_SRCS),$$(TEST_LIBS)))
# Without Criterion: its constructor aborts a program that a test starts.
# Static where no sanitizer forbids it, so that a copy of it runs in a bare chroot.
$(SL_LOAD): HARDEN_LDFLAGS := $(if $(SAN),$(HARDEN_LDFLAGS),-static-pie -Wl,-z,relro,-z,now)
$(eval $(call program,$(SL_LOAD),$(LOAD_SRCS),$$(LOAD_LIBS)))

tests: $(UNIT) $(SYSTEM) $(SL_LOAD) ## Build the test runners and their workload

# Sanitizers report into files, which run.sh looks for: a report must not get lost because
# a test swallowed its program's output, or because it came after the test had passed.
REPORTS = $(abspath $(OUT))/reports
TEST_ENV = SLUICE=$(abspath $(OUT)/sluice) SLUICED=$(abspath $(OUT)/sluiced) \
	SL_LOAD=$(abspath $(SL_LOAD)) \
	SLUICE_BENCH=$(abspath $(OUT)/sluice-bench) SL_EXAMPLE=$(abspath $(EXAMPLE)) \
	TEST_FILTER='$(T)' TEST_REPORTS=$(REPORTS) \
	ASAN_OPTIONS=detect_leaks=1:exitcode=99:log_path=$(REPORTS)/report \
	UBSAN_OPTIONS=print_stacktrace=1

check-unit: $(UNIT) ## Run the unit tests (no root)
	@export $(TEST_ENV); ASAN_OPTIONS=$$ASAN_OPTIONS:strict_string_checks=1 \
		selftests/run.sh $(if $(SAN),unit-asan,unit) $(UNIT)

check-model: need-test ## Verify the model of the session protocol (no root)
	@CC='$(CC)' selftests/model/check.sh $(abspath $(O))/model

check-system: $(SYSTEM) $(OUT)/sluice $(OUT)/sluiced $(EXAMPLE) $(BENCH) $(SL_LOAD) ## Run the system tests (root)
	@$(TEST_ENV) selftests/run.sh $(if $(SAN),system-asan,system) $(SYSTEM)

# As many jobs as CPUs, unless the caller said how many.
PARALLEL = $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))
CHECK = $(MAKE) $(PARALLEL) WERROR=1

check: deps ## Install what is missing, then build and run all tests (root)
	@$(CHECK) all tests bpf-all-arch
	@$(O)/sluice help >/dev/null
	@$(CHECK) check-model
	@$(CHECK) check-unit
	@$(CHECK) fuzz FUZZ_TIME=5
	@$(CHECK) SAN=1 all tests
	@$(CHECK) SAN=1 check-unit
	@$(CHECK) SAN=1 check-system

# Debian's own kernels, in a virtual machine: slow, and no part of check. A kernel is a suite
# of Debian, a package or an image (tools/vm.sh); T chooses system tests as elsewhere.
KERNELS ?= bookworm bookworm-backports
KERNEL_TESTS ?= @(by_key|tcp|udp|bypass_ways)/*

check-kernels: all tests ## Run tests under older kernels, in qemu (KERNELS=, T=)
	@tools/deps.sh install vm
	@for kernel in $(KERNELS); do \
		O='$(O)' tools/vm.sh "$$kernel" '$(or $(T),$(KERNEL_TESTS))' || exit 1; \
	done

# The library has to be instrumented too, so the targets are built as a variant.
fuzz: need-fuzz ## Run each fuzzer for FUZZ_TIME seconds
	$(if $(FUZZ_NAMES),@$(MAKE) SAN=fuzz fuzz-all,@echo 'no fuzz targets')

fuzz-all: $(FUZZ_NAMES:%=run-fuzz-%)

$(foreach name,$(FUZZ_NAMES),$(eval \
	$(call program,$(OUT)/fuzz_$(name),selftests/fuzz/fuzz_$(name).c,-fsanitize=fuzzer)))

# New inputs go below $(O); the seeds in the tree are only read.
run-fuzz-%: $(OUT)/fuzz_%
	$(call say,FUZZ,$* for $(FUZZ_TIME) s)
	@mkdir -p $(OUT)/corpus/$* $(OUT)/found/$*
	@$< -max_total_time=$(FUZZ_TIME) -timeout=10 -verbosity=0 \
		-artifact_prefix=$(OUT)/found/$*/ $(OUT)/corpus/$* \
		$(wildcard selftests/fuzz/corpus/$*)
