# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Format (.clang-format), clang-tidy (.clang-tidy), and all warnings of gcc and clang.

LINT_DIRS := bpf include user tools selftests
FORMAT_FILES := $(sort $(shell find $(LINT_DIRS) -name '*.[ch]'))
USER_SRCS := $(sort $(shell find user tools selftests -name '*.c'))
HEADERS := $(sort $(shell find include user selftests -name '*.h'))

# What clang is to see of the user side: flags that gcc knows too, and the tests' own.
LINT_FLAGS = -std=gnu11 $(WARNINGS) $(CPPFLAGS_ALL) -Iselftests $(TEST_CFLAGS) \
	-DSL_VERSION='"lint"'

.PHONY: format lint-all lint-format lint-clang lint-headers lint-tidy
lint: need-lint need-test ## Check format, warnings of gcc and clang, clang-tidy
	@$(MAKE) WERROR=1 lint-all

lint-all: lint-format all tests lint-clang lint-headers lint-tidy
	@:

format: need-lint ## Reformat the sources in place
	@clang-format -i $(FORMAT_FILES)

lint-format:
	$(call say,FORMAT,$(words $(FORMAT_FILES)) files)
	@clang-format --dry-run -Werror $(FORMAT_FILES)

lint-clang: $(SKEL)
	$(call say,CLANG,$(words $(USER_SRCS)) files)
	@printf '%s\n' $(USER_SRCS) | \
		xargs -n 8 -P $$(nproc) $(CLANG) -fsyntax-only -Werror $(LINT_FLAGS)

# Every header compiles alone.
lint-headers: $(SKEL)
	$(call say,HEADERS,$(words $(HEADERS)) files)
	@printf '%s\n' $(HEADERS) | xargs -n 1 -P $$(nproc) \
		$(CC) -fsyntax-only -Werror $(LINT_FLAGS) -x c

lint-tidy: $(SKEL)
	$(call say,TIDY,$(words $(USER_SRCS)) files)
	@printf '%s\n' $(USER_SRCS) | xargs -P $$(nproc) -I{} \
		clang-tidy --quiet --warnings-as-errors='*' {} -- $(LINT_FLAGS)
