# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# DESTDIR is put before every path, PREFIX is where the files will be used.

DESTDIR ?=
PREFIX ?= /usr/local
INSTALL ?= install

BINDIR := $(DESTDIR)$(PREFIX)/bin
COMPLETION := $(DESTDIR)$(PREFIX)/share/bash-completion/completions/sluice
MANDIR := $(DESTDIR)$(PREFIX)/share/man/man8
DOCDIR := $(DESTDIR)$(PREFIX)/share/doc/sluice
UNITDIR := $(DESTDIR)$(PREFIX)/lib/systemd/system
VARLINKDIR := $(DESTDIR)$(PREFIX)/share/varlink
LIBDIR := $(DESTDIR)$(PREFIX)/lib
INCLUDEDIR := $(DESTDIR)$(PREFIX)/include/sluice
SO_NAME := libsluice.so.$(RELEASE)

$(O)/sluice.bash: $(O)/sluice
	$(call say,GEN,$@)
	$(Q)$(abspath $<) completion bash >$@

$(O)/sluice.8: $(O)/sluice
	$(call say,GEN,$@)
	$(Q)$(abspath $<) manual >$@

$(eval $(call stamp,$(O)/prefix,$(PREFIX)))

$(O)/sluiced.service: deploy/sluiced.service.in $(O)/prefix
	$(call say,GEN,$@)
	$(Q)sed 's|@BINDIR@|$(PREFIX)/bin|' $< >$@

$(O)/libsluice.pc: user/lib/libsluice.pc.in VERSION $(O)/prefix
	$(call say,GEN,$@)
	$(Q)sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@RELEASE@|$(RELEASE)|' $< >$@

install: $(O)/sluice $(O)/sluiced $(O)/sluiced.service $(O)/sluice.bash $(O)/sluice.8 install-lib ## Install all below DESTDIR and PREFIX
	$(Q)$(INSTALL) -D -m 755 $(O)/sluice '$(BINDIR)/sluice'
	$(Q)$(INSTALL) -D -m 755 $(O)/sluiced '$(BINDIR)/sluiced'
	$(Q)$(INSTALL) -D -m 644 $(O)/sluiced.service '$(UNITDIR)/sluiced.service'
	$(Q)$(INSTALL) -D -m 644 user/agent/io.sluice.varlink '$(VARLINKDIR)/io.sluice.varlink'
	$(Q)$(INSTALL) -D -m 644 $(O)/sluice.bash '$(COMPLETION)'
	$(Q)$(INSTALL) -d '$(DOCDIR)'
	$(Q)$(INSTALL) -m 644 LICENSE $(wildcard LICENSES/*.txt) '$(DOCDIR)'
	$(Q)$(INSTALL) -D -m 644 $(O)/sluice.8 '$(MANDIR)/sluice.8'

.PHONY: install-lib
install-lib: lib $(O)/libsluice.pc ## Install libsluice alone
	$(Q)$(INSTALL) -D -m 755 $(LIBSLUICE_SO) '$(LIBDIR)/$(SO_NAME)'
	$(Q)ln -sf $(SO_NAME) '$(LIBDIR)/$(SONAME)'
	$(Q)ln -sf $(SONAME) '$(LIBDIR)/libsluice.so'
	$(Q)$(INSTALL) -D -m 644 $(LIBSLUICE_A) '$(LIBDIR)/libsluice.a'
	$(Q)$(INSTALL) -D -m 644 $(O)/libsluice.pc '$(LIBDIR)/pkgconfig/libsluice.pc'
	$(Q)$(INSTALL) -D -m 644 $(LIBSLUICE_HEADER) '$(INCLUDEDIR)/libsluice.h'

uninstall: ## Remove what install put there
	rm -f '$(BINDIR)/sluice' '$(BINDIR)/sluiced' '$(COMPLETION)' '$(MANDIR)/sluice.8' \
		'$(UNITDIR)/sluiced.service' '$(VARLINKDIR)/io.sluice.varlink'
	rm -f $(addprefix '$(LIBDIR)/,$(addsuffix ',libsluice.a libsluice.so $(SONAME) $(SO_NAME))) \
		'$(LIBDIR)/pkgconfig/libsluice.pc' '$(INCLUDEDIR)/libsluice.h'
	rm -rf '$(DOCDIR)'
