#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The first process of the virtual machine that vm.sh starts: sets up what a system has,
# runs the demo and the tests, and turns the machine off. The last line is the result.
export PATH=/usr/sbin:/usr/bin HOME=/root TERM=dumb LANG=C.UTF-8
export SLUICE=/sluice/build/sluice SLUICED=/sluice/build/sluiced SL_LOAD=/sluice/build/sl-load
export SLUICE_BENCH=/sluice/build/sluice-bench TEST_REPORTS=/tmp/reports
# An emulated CPU is tens of times slower; what hangs ends with the machine's own limit.
export TEST_SLOWER=30 TEST_TIMEOUT=36000
failed=

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
ln -s /proc/self/fd /dev/fd
ln -s fd/0 /dev/stdin
mkdir -p /dev/pts /dev/shm /run
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t bpf bpf /sys/fs/bpf
mount -t securityfs securityfs /sys/kernel/security
ip link set lo up
exec </dev/null >/dev/console 2>&1
cd /sluice || exit 1

# run NAME COMMAND...
run()
{
	local name=$1 start=$SECONDS status=0

	shift
	echo "== $name"
	"$@" || status=$?
	echo "== $name: status $status, $((SECONDS - start)) s"
	[ "$status" -eq 0 ] || failed+=" $name"
}

owners()
{
	local port

	coproc server { "$SL_LOAD" tcp-server --listen 127.0.0.1:0 --echo --until-eof \
		--timeout 900; }
	read -r line <&"${server[0]}"
	port=$(sed -n 's/.* port=\([0-9]*\).*/\1/p' <<<"$line")
	"$SLUICE" run -- "$SL_LOAD" tcp-send --server "127.0.0.1:$port" --bytes 1000 --count 3
}

status()
{
	mkdir /sys/fs/cgroup/seen
	"$SLUICE" sandbox attach /sys/fs/cgroup/seen && "$SLUICE" status &&
		"$SLUICE" sandbox detach /sys/fs/cgroup/seen && rmdir /sys/fs/cgroup/seen
}

# What the machine is for, unless there is a command.
all()
{
	local filter

	run 'feature probe' "$SLUICE" feature probe
	run 'run' owners
	run 'status' status
	run 'demo' tools/demo.sh
	# Left out: hashing a large file within a minute, which no kernel can help.
	TEST_FILTER='!(digest_store)/*' run 'unit tests' selftests/run.sh unit \
		build/selftests/unit
	filter=$(cat filter)
	[ "$filter" = - ] ||
		TEST_FILTER=$filter run 'system tests' selftests/run.sh system build/selftests/system
}

uname -srv
if [ -e command ]; then
	run 'command' bash ./command
else
	all
fi

if [ -z "$failed" ]; then
	echo "vm: all passed"
else
	echo "vm: failed:$failed"
fi
# stty waits until the console has sent all.
stty -F /dev/console sane
sync
echo o >/proc/sysrq-trigger
sleep 60
