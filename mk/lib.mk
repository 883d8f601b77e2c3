# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# libsluice, for runtimes and proxies: what of user/ a client needs, in a shared library with
# versioned symbols and in a static one that has no other globals; and the example that is
# linked with it. The interface is include/sluice/libsluice.h, its symbols user/lib/libsluice.map.

LIBSLUICE_SRCS := $(sort $(wildcard user/lib/*.c)) \
	$(patsubst %,user/base/%.c,clock err escape fds field format hex object parse table utf8) \
	$(patsubst %,user/broker/%.c,caps contain filter filter_arch landlock listener notify probe) \
	$(patsubst %,user/control/%.c,client wire)
LIBSLUICE_LIBS = $(filter -ljson-c,$(PKG_LIBS))
LIBSLUICE_HEADER := include/sluice/libsluice.h
LIBSLUICE_MAP := user/lib/libsluice.map

# The first number changes when programs have to be linked anew.
SONAME := libsluice.so.$(firstword $(subst ., ,$(RELEASE)))
LIBSLUICE_SO := $(OUT)/$(SONAME)
LIBSLUICE_A := $(OUT)/libsluice.a
EXAMPLE := $(OUT)/example-runtime

pic = $(1:%.c=$(OUT)/pic/%.o)
PIC_OBJS := $(call pic,$(LIBSLUICE_SRCS))
PIC_CFLAGS := -fPIC -ffunction-sections -fdata-sections

$(eval $(call stamp,$(OUT)/pic.list,$(LIBSLUICE_SRCS) $(PIC_CFLAGS)))

$(PIC_OBJS): HARDEN_CFLAGS := $(filter-out -fPIE,$(HARDEN_CFLAGS)) $(PIC_CFLAGS)
$(OUT)/pic/%.o: %.c $(OUT)/user.flags $(OUT)/pic.list
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<
-include $(PIC_OBJS:.o=.d)

# What is exported and what the header declares are the same functions, or it is no library.
$(LIBSLUICE_SO): $(PIC_OBJS) $(OUT)/pic.list $(LIBSLUICE_MAP) $(LIBSLUICE_HEADER)
	$(call say,LD,$@)
	$(Q)$(CC) -shared -Wl,-soname,$(SONAME) -Wl,--version-script,$(LIBSLUICE_MAP) \
		-Wl,-z,defs,-z,relro,-z,now,--as-needed,--gc-sections $(SAN_FLAGS) $(LDFLAGS) \
		-o $@ $(PIC_OBJS) $(LIBSLUICE_LIBS)
	$(Q)diff <(nm -D --defined-only $@ | sed -n 's/.* T \([^@]*\).*/\1/p' | sort) \
		<(grep -oE '\<sl_(runtime|gate)_[a-z_]+\(' $(LIBSLUICE_HEADER) | tr -d '(' | grep -v _fn | \
			sort -u)
	$(Q)ln -sf $(SONAME) $(OUT)/libsluice.so

# One object, of which only the symbols of the shared library stay global.
$(LIBSLUICE_A): $(LIBSLUICE_SO)
	$(call say,AR,$@)
	$(Q)$(CC) -r -nostdlib -o $(OUT)/libsluice.o $(PIC_OBJS)
	$(Q)nm -D --defined-only $< | sed -n 's/.* T \([^@]*\).*/\1/p' >$(OUT)/libsluice.symbols
	$(Q)objcopy --keep-global-symbols=$(OUT)/libsluice.symbols $(OUT)/libsluice.o
	$(Q)rm -f $@ && $(AR) rcsD $@ $(OUT)/libsluice.o

# Against the public header and the shared library, as anybody's runtime.
$(EXAMPLE): tools/example-runtime.c $(LIBSLUICE_SO) $(LIBSLUICE_HEADER)
	$(call say,LD,$@)
	$(Q)$(CC) -D_GNU_SOURCE -Iinclude $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $< \
		-L$(OUT) -lsluice -Wl,-rpath,'$$ORIGIN'

.PHONY: lib
lib: $(LIBSLUICE_SO) $(LIBSLUICE_A) ## Build libsluice, shared and static
	@:
