#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What building and testing need, in one table: how to see that it is there, and the
# Debian package that brings it.
#
#	deps.sh install [GROUP]	installs what is missing (root, apt-get): of all groups but
#				bench and vm, or of build and the group
#	deps.sh probe FILE	writes what make wants to know, fails if the build can't work
#	deps.sh need GROUP	fails, naming what is missing of a group
#	deps.sh list		prints the packages with their reasons
set -euo pipefail

CC=${CC:-gcc}
CLANG=${CLANG:-clang}
BPFTOOL=${BPFTOOL:-bpftool}
PKG_CONFIG=${PKG_CONFIG:-pkg-config}
export PATH="$PATH:/usr/sbin:/sbin"

# group | package | probe | reason. Probes: cmd NAME, pkg MODULE [VERSION], header NAME,
# runtime NAME (a library of clang's compiler-rt).
table()
{
	cat <<-END
	build|gcc|cmd $CC|compiles the user side
	build|libc6-dev|header stdio.h|C library and kernel interface headers
	build|clang|cmd $CLANG|compiles the BPF programs
	build|bpftool|cmd $BPFTOOL|links the BPF objects, generates the skeleton
	build|pkg-config|cmd $PKG_CONFIG|finds the libraries
	build|libbpf-dev|pkg libbpf 1.1|loads the BPF programs
	build|libelf-dev|pkg libelf|libbpf reads its objects with it
	build|zlib1g-dev|pkg zlib|libelf needs it
	build|libjson-c-dev|pkg json-c|JSON output
	build|libssl-dev|pkg libcrypto|SHA-256 of executables
	build|libyaml-dev|pkg yaml-0.1|reads policies
	build|libldns-dev|pkg ldns|DNS messages: reads and writes them
	test|libcriterion-dev|pkg criterion|the test runner
	test|liburing-dev|pkg liburing|the test workload opens sockets through io_uring
	test|iproute2|cmd ip|tests make network namespaces
	test|curl|cmd curl|an everyday client for tests and the demo
	test|socat|cmd socat|servers and odd clients for tests and the demo
	test|spin|cmd spin|verifies the model of the session protocol
	test|python3|cmd python3|server and clients of the demo
	test|bind9-dnsutils|cmd dig|a DNS client for tests
	test|dnsmasq-base|cmd dnsmasq|a DNS server for tests to ask
	test|haproxy|cmd haproxy|a proxy that is told whose a connection is, as in examples/
	test|runc|cmd runc|an OCI runtime whose containers the tests attach
	test|podman|cmd podman|containers as people start them, by way of runc
	fuzz|libclang-rt-dev|runtime fuzzer|libFuzzer and clang's sanitizers
	fuzz|llvm|cmd llvm-symbolizer|names in the reports of libFuzzer
	lint|clang-format|cmd clang-format|checks the format
	lint|clang-tidy|cmd clang-tidy|static checks
	lint|shellcheck|cmd shellcheck|checks the scripts
	bench|haproxy|cmd haproxy|what the relay is measured against
	bench|unbound|cmd unbound|what policy DNS is measured against, beside dnsmasq
	vm|qemu-system-x86|cmd qemu-system-x86_64|boots other kernels
	vm|busybox-static|cmd busybox|the first steps of a virtual machine
	vm|cpio|cmd cpio|packs them
	vm|kmod|cmd depmod|finds the kernel's modules
	vm|xz-utils|cmd xz|unpacks them
	vm|e2fsprogs|cmd mkfs.ext4|the virtual machine's root
	vm|procps|cmd sysctl|taken into the virtual machine
	END
}

present()
{
	local kind=$1 what=$2 version=${3:-0}

	case $kind in
	cmd) command -v "$what" >/dev/null ;;
	pkg) "$PKG_CONFIG" --atleast-version="$version" "$what" 2>/dev/null ;;
	header) echo "#include <$what>" | "$CC" -fsyntax-only -x c - 2>/dev/null ;;
	runtime)
		# clang answers with a bare name when it has no such file.
		[ -e "$("$CLANG" -print-file-name="libclang_rt.$what-$(uname -m).a" 2>/dev/null)" ] ||
			[ -e "$("$CLANG" -print-runtime-dir 2>/dev/null)/libclang_rt.$what.a" ]
		;;
	esac
}

# Prints the rows "package|thing" of the groups given that are missing.
missing()
{
	local group package probe kind what version

	while IFS='|' read -r group package probe _; do
		[[ " $* " == *" $group "* ]] || continue
		read -r kind what version <<<"$probe"
		present "$kind" "$what" ${version:+"$version"} && continue
		case $kind in
		header) what="<$what>" ;;
		runtime) what="libclang_rt.$what" ;;
		pkg) what="library $what${version:+ >= $version}" ;;
		esac
		echo "$package|$what"
	done < <(table)
}

packages_of()
{
	cut -d'|' -f1 <<<"$1" | sort -u | tr '\n' ' '
}

# $1: what can't be done, $2: rows of missing(), $3: their group, if it is one
complain()
{
	local how="make deps"

	case ${3:-} in bench | vm) how="tools/deps.sh install $3" ;; esac
	{
		echo "error: $1; missing:"
		awk -F'|' '{ printf "  %-22s Debian package %s\n", $2, $1 }' <<<"$2"
		echo "Run \`$how\` as root, or: apt-get install $(packages_of "$2")"
	} >&2
}

need()
{
	local rows

	rows=$(missing build "$@")
	[ -z "$rows" ] || { complain "can't build${1:+ what \`$1\` needs}" "$rows" "${1:-}"; exit 1; }
}

apt()
{
	DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 "$@" </dev/null
}

install_missing()
{
	local rows package
	local -a packages groups=("$@")

	[ $# -gt 0 ] || groups=(build test fuzz lint)
	rows=$(missing "${groups[@]}")
	[ -n "$rows" ] || return 0
	if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
		complain "can't install packages without root and apt-get" "$rows"
		exit 1
	fi

	read -r -a packages <<<"$(packages_of "$rows")"
	echo "installing ${packages[*]}"
	for package in "${packages[@]}"; do
		apt-cache show "$package" >/dev/null 2>&1 || { apt update; break; }
	done
	# Lists that are there may be too old to fetch from: a second try with new ones.
	apt install --no-install-recommends "${packages[@]}" ||
		{ apt update && apt install --no-install-recommends "${packages[@]}"; }

	# The packages of another release may be older than what is needed.
	rows=$(missing "${groups[@]}")
	[ -z "$rows" ] || { complain "the packages installed don't bring all" "$rows"; exit 1; }
}

# $1: the file that make includes. Shown once: make calls this when the file is old.
probe()
{
	local libs="libbpf libelf zlib json-c libcrypto yaml-0.1 ldns" group rows

	need
	for group in test fuzz lint; do
		rows=$(missing "$group")
		printf '  %-8s %s: %s\n' PROBE "$group" "${rows:+no, needs $(packages_of "$rows")}"
	done | sed 's/: $/: yes/'
	{
		echo "# Written by tools/deps.sh"
		# shellcheck disable=SC2086 # a list of modules
		echo "PKG_CFLAGS := $("$PKG_CONFIG" --cflags $libs)"
		# shellcheck disable=SC2086
		echo "PKG_LIBS := $("$PKG_CONFIG" --libs $libs)"
		if [ -z "$(missing test)" ]; then
			echo "TEST_CFLAGS := $("$PKG_CONFIG" --cflags criterion liburing)"
			echo "TEST_LIBS := $("$PKG_CONFIG" --libs criterion)"
			echo "LOAD_LIBS := $("$PKG_CONFIG" --libs liburing)"
		fi
	} >"$1"
}

case ${1:-} in
install) install_missing ${2:+build "$2"} ;;
probe) probe "${2:?the file to write}" ;;
need) need "${2:?a group: test, fuzz, lint, bench or vm}" ;;
list) table | awk -F'|' '{ printf "%-18s %s\n", $2, $4 }' ;;
*)
	echo "usage: $0 { install [GROUP] | probe FILE | need GROUP | list }" >&2
	exit 2
	;;
esac
