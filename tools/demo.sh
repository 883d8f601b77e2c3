#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The main job on a real, busy workload: a web server and curl, git-style shells and
# python clients in one sandbox, each connection shown with the binary behind it.
# Usage: demo.sh SLUICE
set -euo pipefail

sluice=${1:-${SLUICE:-build/sluice}}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
head -c 100000 /dev/zero >"$work/file"

cat >"$work/workload.sh" <<'SH'
#!/bin/bash
cd "$(dirname "$0")"
python3 -u -m http.server --bind 127.0.0.1 0 >server.log 2>&1 &
server=$!
for _ in $(seq 100); do
	port=$(sed -n 's/.* port \([0-9]*\) .*/\1/p' server.log)
	[ -n "$port" ] && break
	sleep 0.05
done
for _ in $(seq 20); do
	curl -s -o /dev/null "http://127.0.0.1:$port/file" &
	env python3 -c "import urllib.request as u; u.urlopen('http://127.0.0.1:$port/file').read()" &
	(exec 3<>"/dev/tcp/127.0.0.1/$port"; printf 'GET / HTTP/1.0\r\n\r\n' >&3; cat <&3 >/dev/null) &
	wait -n || true
done
while [ "$(jobs -rp | wc -l)" -gt 1 ]; do wait -n || true; done
curl -s http://127.0.0.1:1/ || true
kill $server
SH
chmod +x "$work/workload.sh"
echo "+ $sluice run -- workload.sh   (20 curl, 20 python, 20 bash clients and their server)"
COLUMNS=${COLUMNS:-100} "$sluice" run --events "$work/events" -- "$work/workload.sh"
echo
echo "events: $(wc -l <"$work/events") lines, by kind:"
sed 's/.*"event":"\([a-z]*\)".*/\1/' "$work/events" | sort | uniq -c
