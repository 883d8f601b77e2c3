# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# user/ but the main.c of sluice and of sluiced -> libsluice-user.a, which both,
# sluice-bench and the tests link. PKG_CFLAGS and PKG_LIBS come from the probes ($(O)/config.mk).

MAIN_SRC := user/cli/main.c
AGENT_SRC := user/agent/main.c
LIB_SRCS := $(filter-out $(MAIN_SRC) $(AGENT_SRC),$(sort $(shell find user -name '*.c')))
BENCH_SRCS := $(sort $(wildcard tools/bench/*.c))

LIB := $(OUT)/libsluice-user.a
BENCH := $(if $(BENCH_SRCS),$(OUT)/sluice-bench)
obj = $(1:%.c=$(OUT)/obj/%.o)

WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wformat=2 -Wundef
# Defined as empty, like a source's own `#define _GNU_SOURCE`, so that the two agree.
CPPFLAGS_ALL = -D_GNU_SOURCE= -Iuser -Iinclude -I$(O)/include $(PKG_CFLAGS) $(CPPFLAGS)
CFLAGS ?= -O2 -g
HARDEN_CFLAGS := -fPIE -fstack-protector-strong
HARDEN_LDFLAGS := -pie -Wl,-z,relro,-z,now,--as-needed

# Sanitizers intercept what _FORTIFY_SOURCE would check, and the two disagree.
ifeq ($(SAN),)
HARDEN_CPPFLAGS := -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
else ifeq ($(SAN),1)
SAN_FLAGS := -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
else ifeq ($(SAN),fuzz)
CC := $(CLANG)
SAN_FLAGS := -O1 -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined \
	-fno-sanitize-recover=all
else
$(error SAN=$(SAN) is not known: use SAN=1 or SAN=fuzz)
endif

CFLAGS_ALL = -std=gnu11 $(WARNINGS) $(if $(filter 1,$(WERROR)),-Werror) $(CFLAGS) \
	$(HARDEN_CFLAGS) $(HARDEN_CPPFLAGS) $(SAN_FLAGS)
LDFLAGS_ALL = $(HARDEN_LDFLAGS) $(SAN_FLAGS) $(LDFLAGS)

ALL_LIBS = $(PKG_LIBS) $(TEST_LIBS) $(LOAD_LIBS)
$(eval $(call stamp,$(OUT)/user.flags,$(CC) $(CPPFLAGS_ALL) $(TEST_CFLAGS) $(CFLAGS_ALL) \
	$(LDFLAGS_ALL) $(ALL_LIBS)))
$(eval $(call stamp,$(OUT)/lib.list,$(LIB_SRCS)))

# What the agent tells of its own interface, as a string.
VARLINK := $(O)/include/io.sluice.varlink.h
$(VARLINK): user/agent/io.sluice.varlink
	$(call say,GEN,$@)
	@mkdir -p $(@D)
	$(Q){ echo 'static const char sl_io_sluice_varlink[] ='; \
		sed 's/[\\"]/\\&/g; s/.*/\t"&\\n"/' $<; echo ';'; } >$@

# What is generated must be there before the first compile finds out who includes it.
$(OUT)/obj/%.o: %.c $(OUT)/user.flags | $(SKEL) $(VARLINK)
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

# VERSION, and the commit unless it is that version's tag. Only the sources that use
# SL_VERSION get it, so that a commit doesn't rebuild everything.
RELEASE := $(shell cat VERSION)
COMMIT := $(shell git describe --always --dirty --abbrev=12 --match 'v[0-9]*' 2>/dev/null)
SL_VERSION := $(RELEASE)$(addprefix +,$(filter-out v$(RELEASE),$(COMMIT)))
VERSION_OBJS := $(call obj,$(shell grep -lrw SL_VERSION --include='*.c' user tools selftests))
$(eval $(call stamp,$(OUT)/version,$(SL_VERSION)))
$(VERSION_OBJS): CPPFLAGS_ALL += -DSL_VERSION='"$(SL_VERSION)"'
$(VERSION_OBJS): $(OUT)/version

# Made anew: ar would keep the members of sources that are gone.
$(LIB): $(call obj,$(LIB_SRCS)) $(OUT)/lib.list
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcsD $@ $(filter %.o,$^)

# $(1): program, $(2): sources, $(3): libraries beyond those of the library
define program
$(1): $(call obj,$(2)) $(LIB)
	$$(call say,LD,$$@)
	@mkdir -p $$(@D)
	$$(Q)$$(CC) $$(LDFLAGS_ALL) -o $$@ $$(filter %.o,$$^) $(LIB) $(3) $$(PKG_LIBS) -pthread -lm
-include $(patsubst %.o,%.d,$(call obj,$(2)))
endef

$(eval $(call program,$(OUT)/sluice,$(MAIN_SRC)))
$(eval $(call program,$(OUT)/sluiced,$(AGENT_SRC)))
$(eval $(call program,$(OUT)/sluice-bench,$(BENCH_SRCS)))
-include $(patsubst %.o,%.d,$(call obj,$(LIB_SRCS)))
