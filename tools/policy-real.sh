#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Real programs under a policy that allows the package mirror this machine is configured
# for, and nothing else: policy-real.sh SLUICE. Needs root and the mirror; says why it skips.
set -euo pipefail

sluice=${1:?path of sluice}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

skip() {
	echo "skipped: $*"
	exit 0
}

# shellcheck disable=SC2016 # apt-get expands it
uri=$(apt-get indextargets --format '$(REPO_URI)' 2>/dev/null | grep -E '^https?://' | head -n 1) ||
	skip "apt has no mirror that is reached by http"
host=${uri#*://}
host=${host%%/*}
case $uri in https:*) port=443 ;; *) port=80 ;; esac
case $host in *:*) port=${host##*:} host=${host%:*} ;; esac
proxy=$(apt-config dump Acquire | grep -ciE '::proxy ' || true)
[ "$proxy" -eq 0 ] || skip "apt uses a proxy"
curl -fsS -m 20 -o /dev/null "${uri%/}/" 2>/dev/null || skip "the mirror does not answer"

policy() {
	cat <<-EOF
		version: 1
		network_policies:
		  mirror:
		    endpoints: [{host: "$host", port: $port}]
		    binaries: [$1]
	EOF
}

fail() {
	echo "FAILED: $*"
	sed 's/^/    /' "$dir/err"
	exit 1
}

# Names are looked up by the program itself: its resolver is not the mirror, so hosts are given.
address=$(getent ahosts "$host" | awk '{ print $1; exit }')
policy '{path: /usr/bin/curl}' >"$dir/policy.yaml"
run() {
	"$sluice" run --policy "$dir/policy.yaml" -- "$@" >"$dir/out" 2>"$dir/err"
}

run curl -fsS -m 20 -o /dev/null --resolve "$host:$port:$address" "${uri%/}/" ||
	fail "curl, which the policy names, did not reach the mirror"
echo "ok: curl reaches the mirror"
for program in "git ls-remote ${uri%%:*}://$address:$port/x" \
	"/usr/bin/python3 -c 'import socket; socket.create_connection((\"$address\", $port), 20)'"; do
	! run sh -c "$program" || fail "${program%% *}, which no rule names, got through"
	grep -q "add to 'mirror': binaries: \[{path: /" "$dir/err" ||
		fail "${program%% *} was denied, but nothing said what to add"
	echo "ok: ${program%% *} is denied, and told what to add"
done
