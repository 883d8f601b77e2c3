# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Format (.clang-format), shellcheck, all warnings of gcc and clang, and clang-tidy
# (.clang-tidy). The parts run by themselves too: make lint-tidy and so on.

LINT_DIRS := bpf include user tools selftests
FORMAT_FILES := $(sort $(shell find $(LINT_DIRS) -name '*.[ch]'))
USER_SRCS := $(sort $(shell find user tools selftests -name '*.c'))
HEADERS := $(sort $(shell find include user selftests tools -name '*.h'))
BPF_HEADERS := $(sort $(wildcard bpf/*.h))
SCRIPTS := $(sort $(wildcard tools/*.sh selftests/*.sh .ci/run))

# What clang is to see of the user side: flags that gcc knows too, and the tests' own.
LINT_FLAGS = -std=gnu11 $(WARNINGS) $(CPPFLAGS_ALL) -Iselftests $(TEST_CFLAGS) \
	-DSL_VERSION='"lint"'
LINT_BPF_FLAGS = $(BPF_CFLAGS) -D__TARGET_ARCH_$(BPF_NAME_$(ARCH))

.PHONY: format lint-all lint-format lint-shell lint-clang lint-headers lint-tidy
lint: need-lint need-test ## Check format, scripts, warnings of gcc and clang, clang-tidy
	@$(MAKE) WERROR=1 lint-all

# The BPF side's warnings come from its builds, one for each arch.
lint-all: lint-format lint-shell bpf-all-arch all tests lint-clang lint-headers lint-tidy
	@:

format: need-lint ## Reformat the sources in place
	@clang-format -i $(FORMAT_FILES)

lint-format:
	$(call say,FORMAT,$(words $(FORMAT_FILES)) files)
	@clang-format --dry-run -Werror $(FORMAT_FILES)

lint-shell:
	$(call say,SHELL,$(words $(SCRIPTS)) files)
	@shellcheck $(SCRIPTS)

lint-clang: $(SKEL) $(VARLINK)
	$(call say,CLANG,$(words $(USER_SRCS)) files)
	@printf '%s\n' $(USER_SRCS) | \
		xargs -n 8 -P $$(nproc) $(CLANG) -fsyntax-only -Werror $(LINT_FLAGS)

# Every header compiles alone; those of the BPF side after kernel.h, as in the programs.
lint-headers: $(SKEL) $(VARLINK)
	$(call say,HEADERS,$(words $(HEADERS) $(BPF_HEADERS)) files)
	@printf '%s\n' $(HEADERS) | xargs -n 1 -P $$(nproc) \
		$(CC) -fsyntax-only -Werror $(LINT_FLAGS) -x c
	@printf '%s\n' $(BPF_HEADERS) | xargs -n 1 -P $$(nproc) $(CLANG) -fsyntax-only \
		-Werror $(LINT_BPF_FLAGS) -Wno-unused-function -include kernel.h -x c

lint-tidy: $(SKEL) $(VARLINK)
	$(call say,TIDY,$(words $(BPF_SRCS) $(USER_SRCS)) files)
	@printf '%s\n' $(BPF_SRCS) | xargs -P $$(nproc) -I{} \
		clang-tidy --quiet --warnings-as-errors='*' {} -- $(LINT_BPF_FLAGS)
	@printf '%s\n' $(USER_SRCS) | xargs -P $$(nproc) -I{} \
		clang-tidy --quiet --warnings-as-errors='*' {} -- $(LINT_FLAGS)
