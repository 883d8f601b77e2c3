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

install: $(O)/sluice $(O)/sluiced $(O)/sluiced.service $(O)/sluice.bash $(O)/sluice.8 ## Install sluice and sluiced below DESTDIR and PREFIX
	$(Q)$(INSTALL) -D -m 755 $(O)/sluice '$(BINDIR)/sluice'
	$(Q)$(INSTALL) -D -m 755 $(O)/sluiced '$(BINDIR)/sluiced'
	$(Q)$(INSTALL) -D -m 644 $(O)/sluiced.service '$(UNITDIR)/sluiced.service'
	$(Q)$(INSTALL) -D -m 644 user/agent/io.sluice.varlink '$(VARLINKDIR)/io.sluice.varlink'
	$(Q)$(INSTALL) -D -m 644 $(O)/sluice.bash '$(COMPLETION)'
	$(Q)$(INSTALL) -d '$(DOCDIR)'
	$(Q)$(INSTALL) -m 644 LICENSE $(wildcard LICENSES/*.txt) '$(DOCDIR)'
	$(Q)$(INSTALL) -D -m 644 $(O)/sluice.8 '$(MANDIR)/sluice.8'

uninstall: ## Remove what install put there
	rm -f '$(BINDIR)/sluice' '$(BINDIR)/sluiced' '$(COMPLETION)' '$(MANDIR)/sluice.8' \
		'$(UNITDIR)/sluiced.service' '$(VARLINKDIR)/io.sluice.varlink'
	rm -rf '$(DOCDIR)'
