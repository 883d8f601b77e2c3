#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Runs one test runner: run.sh NAME RUNNER. Its summary is the last line. Fails when a
# test fails or crashes, and also when
# - no test ran at all: a filter without a match, or a runner that lost its tests;
# - a sanitizer reported something, in the runner or in a program that a test started.
#
#	TEST_FILTER	only tests that match SUITE/NAME, with * and ?
#	TEST_TIMEOUT	seconds that the whole suite may take (default 1800)
#	TEST_JOBS	how many tests run at once (default 2, with one CPU 1)
#	TEST_SLOWER	how many times its own limit a test may take (default 3, common/runner.c)
#	TEST_REPORTS	directory for the sanitizers' reports
set -euo pipefail

name=${1:?name of the suite}
runner=${2:?path of the runner}
reports=${TEST_REPORTS:?directory for reports}
log=$runner.log

if [[ $name == system* && $(id -u) -ne 0 ]]; then
	echo "error: the system tests load BPF programs and make cgroups: run them as root" >&2
	exit 1
fi

# Programs under test may have dropped their privileges when they report.
rm -rf "$reports"
mkdir -p "$reports"
chmod 1777 "$reports"

export TEST_SLOWER=${TEST_SLOWER:-3}
jobs=${TEST_JOBS:-$(($(nproc) > 1 ? 2 : 1))}
args=(-j"$jobs" --short-filename --color=never --verbose)
[ -z "${TEST_FILTER:-}" ] || args+=(--filter "$TEST_FILTER")

echo "== $name tests"
status=0
timeout --kill-after=10 "${TEST_TIMEOUT:-1800}" "$runner" "${args[@]}" </dev/null 2>&1 |
	tee "$log" || status=$?

# Once more at the end, where a reader of the log's tail finds it.
failures()
{
	grep -E '^\[----\]|^\[FAIL\]|^\[SYS|CRASH' "$log" | grep -v Synthesis | tail -n 100
	grep '^\[====\] Synthesis' "$log" || echo 'the runner made no summary'
}

if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then
	echo "error: the $name tests did not end in time; the last one above hangs" >&2
fi
if [ -n "$(ls -A "$reports")" ]; then
	cat "$reports"/*
	echo "error: sanitizer reports in $reports" >&2
	[ "$status" -ne 0 ] || status=1
fi
if [ "$status" -ne 0 ]; then
	echo "== $name tests that failed"
	failures
	exit "$status"
fi

# Tests that skip themselves are not among those that were tested.
if ! grep -Eq '^\[====\] Synthesis: Tested: [1-9]' "$log"; then
	echo "error: no $name test ran${TEST_FILTER:+ for filter $TEST_FILTER}" >&2
	exit 1
fi
