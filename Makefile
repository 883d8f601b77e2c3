# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# make            builds into build/ (O=dir for another place, V=1 shows commands)
# make help       lists the targets and variables
#
# What is built how:	mk/bpf.mk	the BPF object and its skeleton
#			mk/user.mk	library, sluice, sluice-bench
#			mk/lib.mk	libsluice and the example that uses it
#			mk/test.mk	test runners, fuzzers, check
#			mk/lint.mk	format and static checks
#			mk/install.mk	install and uninstall
# What must be there:	tools/deps.sh	one table of tools, libraries and their packages

.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules --no-print-directory
SHELL := /bin/bash

# Root's tools (bpftool, ip) are not on every user's path.
export PATH := $(PATH):/usr/sbin:/sbin

O ?= build
V ?= 0
# SAN=1: address, leak and undefined behaviour sanitizers. SAN=fuzz: libFuzzer (clang).
SAN ?=
WERROR ?= 0
FUZZ_TIME ?= 60
# Runs only the tests that match: T='suite/name*'.
T ?=

ifeq ($(origin CC),default)
CC := gcc
endif
AR := ar
CLANG ?= clang
BPFTOOL ?= bpftool
PKG_CONFIG ?= pkg-config
HOST_ARCH := $(shell uname -m)
ARCH ?= $(HOST_ARCH)

# Objects of a variant of user space live apart; the BPF object is one for all.
OUT := $(O)$(if $(SAN),/$(if $(filter fuzz,$(SAN)),fuzz,asan))

Q := $(if $(filter 1,$(V)),,@)
say = @$(if $(filter 1,$(V)),:,printf '  %-8s %s\n' '$(1)' '$(2)')

.PHONY: all tests deps check check-model check-unit check-system check-kernels demo bench fuzz \
	fuzz-all lint install uninstall clean help FORCE
all:

# These have to work before anything is installed: they take nothing from the probes.
BARE_GOALS := deps check demo clean help uninstall
ifneq ($(filter-out $(BARE_GOALS),$(or $(MAKECMDGOALS),all)),)
NEED_CONFIG := 1
endif

ifdef NEED_CONFIG
# Made by its rule below when missing or old, after which make starts over. Read only
# once it exists: `-include` would hide the message about what is missing.
include $(O)/config.mk
endif

# An installed or removed package changes dpkg's status: probe again.
$(O)/config.mk: tools/deps.sh $(wildcard /var/lib/dpkg/status)
	@mkdir -p $(@D)
	@CC='$(CC)' CLANG='$(CLANG)' BPFTOOL='$(BPFTOOL)' PKG_CONFIG='$(PKG_CONFIG)' \
		tools/deps.sh probe $@

# Stops with one message when something of the group (test, lint, fuzz) is missing.
need-%: FORCE
	@CC='$(CC)' CLANG='$(CLANG)' PKG_CONFIG='$(PKG_CONFIG)' tools/deps.sh need $*

# A file that changes only when the text $(2) does: depend on it to notice other flags.
# Usage: $(call stamp,file,text)
define stamp
$(1): FORCE
	@mkdir -p $$(@D)
	@printf '%s\n' '$(2)' | cmp -s - $$@ || printf '%s\n' '$(2)' >$$@
endef

include mk/bpf.mk mk/user.mk mk/lib.mk mk/test.mk mk/lint.mk mk/install.mk

deps: ## Install the Debian packages that building and testing need (root)
	@tools/deps.sh install

all: $(OUT)/sluice $(OUT)/sluiced $(BENCH) lib $(EXAMPLE) ## Build all programs and libsluice (default)

demo: deps ## Run sluice on a real workload; does its own set-up
	@$(MAKE) $(PARALLEL) all $(if $(wildcard selftests/load/*.c),$(O)/sl-load)
	@SLUICE=$(abspath $(O)/sluice) SL_LOAD=$(abspath $(O)/sl-load) \
		SLUICE_BENCH=$(abspath $(O)/sluice-bench) tools/demo.sh

bench: $(OUT)/sluice $(OUT)/sluiced $(OUT)/sluice-bench ## Measure (root); results in $(O)/bench/*.json
	@mkdir -p $(O)/bench
	@SLUICE=$(abspath $(OUT)/sluice) $(OUT)/sluice-bench all --json-dir $(O)/bench

clean: ## Remove what was built
	rm -rf $(if $(filter-out / . .. ./ ../,$(O)),$(O),$(error refusing to remove O=$(O)))

help: ## Show this
	@printf 'Targets:\n'
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | sort | \
		sed 's/\$$(O)/$(subst /,\/,$(O))/' | expand -t 18
	@printf 'Variables:\n'
	@printf '  %-15s %s\n' \
		'O=dir' 'where to build (now: $(O))' \
		'V=1' 'show commands' \
		'SAN=1' 'sanitizer build, in $(O)/asan' \
		'WERROR=1' 'warnings are errors (always so in check and lint)' \
		'ARCH=name' 'arch of the BPF object: x86_64 or aarch64 (now: $(ARCH))' \
		"T='suite/name*'" 'run only these tests' \
		'KERNELS=…' 'what check-kernels boots: suites, packages, images' \
		'FUZZ_TIME=60' 'seconds for each fuzzer' \
		'DESTDIR= PREFIX=' 'where install puts things (now: $(PREFIX))'

FORCE:
