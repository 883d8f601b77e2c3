#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Real clients of the registries that this machine is configured for, under policies that
# name these and nothing else: policy-real.sh SLUICE. Of each client: what is listed works;
# what is not is denied, and told what to add; a policy made of that alone works. Needs
# root; says what it skips and why. A few requests to each registry, nothing is installed.
set -euo pipefail

sluice=$(readlink -f "${1:?path of sluice}")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
chmod 755 "$dir"
policy=$dir/policy.yaml
failed=0

host_of() { sed -E 's#^[a-z]+://([^/:]+).*#\1#' <<<"$1"; }

port_of() {
	case $1 in
	*://*:[0-9]*) sed -E 's#^[a-z]+://[^/:]+:([0-9]+).*#\1#' <<<"$1" ;;
	https:*) echo 443 ;;
	*) echo 80 ;;
	esac
}

run() { "$sluice" run --policy "$policy" -- "$@" >"$dir/out" 2>"$dir/err"; }

fail() {
	echo "FAILED: $*"
	sed 's/^/    /' "$dir/err"
	failed=1
}

# Adds what each line of advice says to the policy, which has a list a line; fails when
# there is none. What is said of addresses that were only tried is not followed.
follow() {
	local line key what list n=0

	while IFS= read -r line; do
		case $line in
		*"; add to '"*)
			key=${line#*; add to \'} key=${key%%\': *}
			list=${line#*"; add to '$key': "} what=${list%%: \[*}
			list=${list#*: \[} list=${list%]}
			KEY=$key WHAT=$what LIST=$list perl -0pi -e \
				's/^(  \Q$ENV{KEY}\E:\n(?:    .*\n)*?    \Q$ENV{WHAT}\E: \[)/$1$ENV{LIST}, /m' \
				"$policy"
			;;
		*"; add an entry: {"*)
			list=${line#*; add an entry: \{endpoints: } list=${list%\}}
			printf '  learned%d:\n    endpoints: %s\n    binaries: %s\n' "$RANDOM" \
				"${list%%, binaries: *}" "${list#*, binaries: }" >>"$policy"
			;;
		*) continue ;;
		esac
		n=$((n + 1))
	done < <(grep 'denied: ' "$dir/err")
	[ "$n" -gt 0 ]
}

# learn NAME COMMAND...: from an empty policy to one that is enough.
learn() {
	local name=$1 round

	shift
	printf 'version: 1\nnetwork_policies:\n  none:\n    endpoints: [%s]\n    binaries: [%s]\n' \
		'{cidr: 192.0.2.1/32, port: 1}' '{path: /nowhere/none}' >"$policy"
	for round in 1 2 3 4 5 6; do
		# apt-get update fails to fetch with status 0.
		if run "$@" && ! grep -q 'denied: ' "$dir/err"; then
			[ "$round" -gt 1 ] || fail "$name, which no rule names, got through"
			echo "ok: $name works by advice alone, after $((round - 1)) rounds"
			return
		fi
		follow || break
	done
	fail "$name: the advice was followed, and it does not work"
}

# listed NAME URL BINARY COMMAND...: by name, and with the resolver as the notice says.
listed() {
	local name=$1 url=$2 binary=$3

	shift 3
	cat >"$policy" <<-END
		version: 1
		network_policies:
		  registry:
		    endpoints: [{host: "$(host_of "$url")", port: $(port_of "$url")}]
		    binaries: [{path: $binary}]
	END
	run true || fail "$name: the policy is not taken"
	sed -i 's/^/denied: /' "$dir/err"
	follow || true
	if run "$@"; then
		echo "ok: $name, by name"
	else
		fail "$name, which the policy names, does not work"
	fi
}

both() {
	local name=$1 url=$2 binary=$3

	shift 3
	listed "$name" "$url" "$binary" "$@"
	learn "$name" "$@"
}

reaches() { curl -fsS -m 20 -o /dev/null "$1" 2>/dev/null; }

npm_part() {
	local url

	command -v npm >/dev/null || { echo "skipped: no npm"; return; }
	url=$(npm config get registry)
	[ -z "$(npm config get proxy | grep -v null)$(npm config get https-proxy | grep -v null)" ] ||
		{ echo "skipped: npm uses a proxy"; return; }
	reaches "$url" || { echo "skipped: the npm registry does not answer"; return; }
	both curl "$url" /usr/bin/curl /usr/bin/curl -fsS -m 20 -o /dev/null "$url"
	both python3 "$url" /usr/bin/python3 /usr/bin/python3 -c \
		'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=20)' "$url"
	both npm "$url" "$(readlink -f "$(command -v node)")" \
		npm view is-odd version --cache "$dir/npm" --fetch-retries 0
}

apt_part() {
	local url proxy state=$dir/apt

	# shellcheck disable=SC2016 # apt-get expands it
	url=$(apt-get indextargets --format '$(REPO_URI)' 2>/dev/null | grep -E '^https?://.*debian/?$' |
		head -n 1) || { echo "skipped: apt has no Debian mirror that is reached by http"; return; }
	proxy=$(apt-config dump Acquire | grep -ciE '::proxy ' || true)
	[ "$proxy" -eq 0 ] || { echo "skipped: apt uses a proxy"; return; }
	reaches "${url%/}/" || { echo "skipped: the Debian mirror does not answer"; return; }
	mkdir -p "$state/lists/partial" "$state/cache/archives/partial" "$state/parts"
	chown -R _apt "$state/lists/partial" "$state/cache/archives/partial"
	# shellcheck disable=SC1091 # a file of the system, not of this tree
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $url" \
		"$(. /etc/os-release && echo "$VERSION_CODENAME")-updates main" >"$state/sources.list"
	both apt-get "$url" /usr/bin/apt-get apt-get -o "Dir::State=$state" \
		-o "Dir::Cache=$state/cache" -o Dir::State::status=/var/lib/dpkg/status \
		-o "Dir::Etc::sourcelist=$state/sources.list" -o "Dir::Etc::sourceparts=$state/parts" \
		-o Acquire::Retries=0 -o APT::Update::Error-Mode=any update
}

npm_part
apt_part
exit "$failed"
