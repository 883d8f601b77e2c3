#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Verifies the model of the session protocol: check.sh DIR, where DIR takes what is built.
# The right protocol is searched exhaustively; then each fault of the table in session.pml
# has to be found, by the property that is named there. What a search printed is in
# DIR/VIEW-FAULT/log, and the steps to its error are shown there by
#
#	FAULT=number UPSETS=0 CALLS=0 ../pan -r session.pml.trail
set -euo pipefail

model=$(realpath "$(dirname "$0")")/session.pml
dir=${1:?directory for what is built}
cc=${CC:-gcc}

# Name, upsets, calls. The more of one, the less of the other: states multiply.
views="session 3 0
calls 2 1
more-calls 1 2
cycles 2 0
cycles-calls 1 1"
mib=400
seconds=300

build()
{
	local safety

	spin -a "$model" >spin.log || { cat spin.log >&2; exit 1; }
	# Generated code, so no warnings; optimised where most of the states are.
	$cc -w -O2 -DSAFETY -DNOCLAIM -DMEMLIM=$mib -o pan pan.c &
	safety=$!
	$cc -w -O0 -DNP -DNOCLAIM -DNOFAIR -DMEMLIM=$mib -o pan-cycles pan.c
	wait $safety
}

# $1: view, $2: fault, $3: its number
search()
{
	local pan=../pan upsets calls

	read -r _ upsets calls < <(grep "^$1 " <<<"$views")
	[[ $1 != cycles* ]] || pan="../pan-cycles -l"
	mkdir "$1-$2"
	cd "$1-$2"
	# pan's own status says nothing. An error at the limit of depth (-b): nothing is cut off.
	# shellcheck disable=SC2086 # a command with an option
	FAULT=$3 UPSETS=$upsets CALLS=$calls timeout $seconds $pan -E -b -n -m20000 -w20 \
		>log 2>&1 || echo "status $?" >>log
}

# Faults of the table: view, name, number, property, words.
faults()
{
	sed -nE 's@^#define (F_\w+) ([0-9]+)\s+/\* (\S+) (\w+): (.*) \*/$@\3 \1 \2 \4 \5@p' "$model"
}

search_all()
{
	local view fault number

	while read -r view fault number _; do
		while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do
			wait -n
		done
		search "$view" "$fault" "$number" &
	done
	wait
}

# $1: log, $2: what was expected
failed()
{
	echo "error: $2; $dir/$1 says:" >&2
	cat "$1" >&2
	status=1
}

judge_right()
{
	local view log

	while read -r view _; do
		log=$view-F_NONE/log
		if grep -q 'errors: 0$' "$log" && ! grep -Eq '^status|not completed' "$log"; then
			sed -nE "s/^ *([0-9]+) states, stored.*/  MODEL    $view: \1 states, no error/p" \
				"$log"
		else
			failed "$log" "the protocol is wrong, or not all of it was searched"
		fi
	done <<<"$views"
}

judge_faults()
{
	local view fault property words log pattern found=0

	while read -r view fault _ property words; do
		log=$view-$fault/log
		pattern="^pan:1: assertion violated .*P_$property\)"
		[[ $view != cycles* ]] || pattern="^pan:1: non-progress $property"
		if grep -Eq "$pattern" "$log"; then
			found=$((found + 1))
		else
			failed "$log" "$fault ($words) must break '$property'"
		fi
	done < <(faults)
	# As many as there are lines: one that sed can't read is not lost in silence.
	[ "$found" -eq "$(grep -c '^#define F_.* /\*' "$model")" ] || status=1
	echo "  MODEL    $found faults, each found by its property"
}

rm -rf "$dir"
mkdir -p "$dir"
cd "$dir"
build
{ awk '{ print $1, "F_NONE 0" }' <<<"$views"; faults; } | search_all
status=0
judge_right
# What a fault breaks says nothing when the protocol itself is broken.
[ $status -ne 0 ] || judge_faults
exit $status
