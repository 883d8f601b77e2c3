#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Runs what was built under another kernel, in a virtual machine without hardware help
# (qemu, TCG), so that it works wherever qemu does. Nothing is installed or mounted here.
#
#	vm.sh KERNEL [FILTER]
#	vm.sh KERNEL -c COMMAND		runs a shell command inside, and nothing else
#
#	KERNEL	a Debian kernel package (.deb); a kernel image, with its modules in
#		lib/modules beside the image's directory; or a suite of Debian, such as
#		bookworm-backports, whose cloud kernel is fetched once and kept
#	FILTER	system tests to run, as SUITE/NAME with * and ?; all when not given, none
#		when '-'. Unit tests are always run.
#
#	O		directory of what was built; needs `make all tests` (default build)
#	VM_TIMEOUT	seconds that the machine may run (default 3600)
#	VM_MEMORY	MiB of memory (default 2048)
#
# The root is an ext4 image of this machine's own Debian packages, and the test runs on a
# snapshot of it; vm-guest.sh is what runs inside. Ends with 0 when all passed.
set -euo pipefail
export PATH="$PATH:/usr/sbin:/sbin"

tools=$(cd "$(dirname "$0")" && pwd)
source=$(dirname "$tools")
kernel=${1:?usage: vm.sh KERNEL [FILTER]}
filter=${2:-}
command=
[ "$filter" != -c ] || command=${3:?a shell command}
out=$(realpath "${O:-$source/build}")
work=
qemu=

cleanup()
{
	[ -z "$qemu" ] || kill "$qemu" 2>/dev/null || true
	[ -z "$work" ] || rm -rf "$work"
}

fail()
{
	echo "error: $*" >&2
	exit 1
}

# Packages whose programs the guest needs, for tests and the demo; what they depend on
# comes along. Debian's python3 stands for what people run in a sandbox.
userland()
{
	apt-cache depends --recurse --installed --no-recommends --no-suggests --no-conflicts \
		--no-breaks --no-replaces --no-enhances base-files bash coreutils dash \
		util-linux mount sed grep mawk findutils iproute2 curl socat procps kmod python3 |
		grep '^[a-z0-9]' | sort -u
}

# Fetches the newest cloud kernel of a suite from the mirror that apt uses here, with
# settings of its own: neither this machine's sources nor its lists are changed.
fetch()
{
	local suite=$1 dir=$out/vm/$1 mirror package

	compgen -G "$dir/*.deb" >/dev/null && return
	# shellcheck disable=SC2016,SC1091 # apt's own expression; os-release is the machine's
	mirror=$(apt-get indextargets --format '$(REPO_URI)' \
		"Created-By: Packages" "Release: $(. /etc/os-release && echo "$VERSION_CODENAME")" |
		head -n 1)
	[ -n "$mirror" ] || fail "apt names no mirror of this release to fetch a kernel from"
	mkdir -p "$work"/apt/{lists,cache/archives}/partial "$dir"
	echo "deb $mirror $suite main" >"$work/apt/sources.list"
	cat >"$work/apt/config" <<-END
	Dir::Etc::SourceList "$work/apt/sources.list";
	Dir::Etc::SourceParts "/dev/null";
	Dir::State::Lists "$work/apt/lists";
	Dir::Cache "$work/apt/cache";
	APT::Sandbox::User "root";
	END
	export APT_CONFIG=$work/apt/config
	apt-get -q update >&2
	package=$(apt-cache depends --important linux-image-cloud-amd64 |
		sed -n 's/^ *Depends: \(linux-image-.*\)/\1/p' | head -n 1)
	[ -n "$package" ] || fail "suite $suite has no cloud kernel"
	(cd "$dir" && apt-get -q download "$package" >&2)
	unset APT_CONFIG
}

# Sets image, release and modules (the directory that holds lib/modules).
find_kernel()
{
	if [[ $kernel != */* && ! -e $kernel ]]; then
		fetch "$kernel"
		kernel=$(find "$out/vm/$kernel" -name '*.deb' -printf '%T@ %p\n' |
			sort -rn | head -n 1 | cut -d ' ' -f 2-)
	fi
	[ -r "$kernel" ] || fail "can't read kernel '$kernel'"
	if [[ $kernel == *.deb ]]; then
		dpkg -x "$kernel" "$work/kernel"
		image=$(echo "$work"/kernel/boot/vmlinuz-*)
		modules=$work/kernel
		[ -e "$modules/lib" ] || modules=$work/kernel/usr
	else
		image=$(realpath "$kernel")
		modules=$(dirname "$(dirname "$image")")
	fi
	release=${image##*/vmlinuz-}
	[ -d "$modules/lib/modules/$release" ] || fail "no modules of kernel $release in $modules"
}

# The root file system of the guest.
make_root()
{
	local root=$work/root dir file package

	mkdir -p "$root"/{usr/{bin,sbin,lib,lib64},dev,proc,sys,run,tmp,var/tmp,root,etc,sluice}
	for dir in bin sbin lib lib64; do
		ln -s "usr/$dir" "$root/$dir"
	done
	chmod 1777 "$root/tmp" "$root/var/tmp"

	for package in $(userland); do
		dpkg -L "$package" 2>/dev/null || true
	done | grep -vE '^/usr/(share/(doc|man|locale|info|lintian)|include)/|\.a$' |
		while read -r file; do
			[ -d "$file" ] || [ ! -e "$file" ] || echo "$file"
		done >"$work/files"
	tar -C / -cf - -T "$work/files" 2>/dev/null |
		tar -C "$root" --keep-directory-symlink -xf -
	# Copies, as links would: the loader looks for a library by the name that ldd shows.
	ldd "$out"/{sluice,selftests/{unit,system}} |
		sed -n 's|.*=> \(/[^ ]*\) .*|\1|p' | sort -u |
		while read -r file; do
			[ -e "$root$file" ] || cp -L "$file" "$root/usr/lib/"
		done
	cp -a /etc/alternatives "$root/etc/"
	ln -s mawk "$root/usr/bin/awk"

	mkdir -p "$root/lib/modules" "$root/sluice/build/selftests" "$root/sluice/selftests"
	cp -a "$modules/lib/modules/$release" "$root/lib/modules/"
	depmod -b "$root/usr" "$release"
	cp "$out"/{sluice,sluiced,sluice-bench,sl-load} "$root/sluice/build/"
	cp "$out"/selftests/{unit,system} "$root/sluice/build/selftests/"
	cp "$source/selftests/run.sh" "$root/sluice/selftests/"
	cp -a "$source/examples" "$tools" "$root/sluice/"
	printf '%s\n' 'root:x:0:0::/root:/bin/bash' 'nobody:x:65534:65534::/:/bin/false' \
		>"$root/etc/passwd"
	printf '%s\n' 'root:x:0:' 'nogroup:x:65534:' >"$root/etc/group"
	printf '127.0.0.1 localhost\n::1 localhost\n' >"$root/etc/hosts"
	echo 'nameserver 127.0.0.1' >"$root/etc/resolv.conf"
	printf '%s' "$filter" >"$root/sluice/filter"
	[ -z "$command" ] || printf '%s\n' "$command" >"$root/sluice/command"
	mkfs.ext4 -q -F -E root_owner=0:0 -d "$root" "$work/root.img" 1G >/dev/null
}

# Loads what the kernel needs to see its root, and goes there.
make_initramfs()
{
	local tree=$work/initramfs module file n=0

	mkdir -p "$tree"/{bin,dev,root,modules}
	cp "$(command -v busybox)" "$tree/bin/"
	modprobe -d "$work/root/usr" -S "$release" --show-depends -a virtio_pci virtio_blk ext4 |
		sed -n 's/^insmod \([^ ]*\).*/\1/p' | awk '!seen[$0]++' >"$work/modules"
	while read -r module; do
		n=$((n + 1))
		file=$tree/modules/$(printf '%03d' $n).ko
		case $module in
		*.xz) xz -dc "$module" >"$file" ;;
		*.zst) zstd -qdc "$module" >"$file" ;;
		*) cp "$module" "$file" ;;
		esac
	done <"$work/modules"
	cat >"$tree/init" <<-'END'
	#!/bin/busybox sh
	b=/bin/busybox
	$b mount -t devtmpfs none /dev
	for module in /modules/*.ko; do $b insmod "$module"; done
	n=0
	while [ ! -e /dev/vda ] && [ $n -lt 1000 ]; do n=$((n + 1)); $b usleep 10000; done
	$b mount -t ext4 /dev/vda /root && $b umount /dev
	exec $b switch_root /root /sluice/tools/vm-guest.sh
	END
	chmod 755 "$tree/init"
	(cd "$tree" && find . | cpio -o -H newc --quiet) >"$work/initrd"
}

run_machine()
{
	local shown

	timeout --kill-after=10 "${VM_TIMEOUT:-3600}" qemu-system-x86_64 \
		-accel tcg,thread=multi -cpu max,cx16=off -smp 2 -m "${VM_MEMORY:-2048}" \
		-nodefaults -no-reboot -display none -monitor none -serial stdio \
		-kernel "$image" -initrd "$work/initrd" \
		-append "console=ttyS0 quiet loglevel=3 panic=-1 mitigations=off" \
		-drive "file=$work/root.img,format=raw,if=virtio,snapshot=on" \
		</dev/null >"$work/console" 2>&1 &
	qemu=$!
	# Tests that the filter leaves out are listed as disabled.
	tail --pid="$qemu" -n +1 -f "$work/console" |
		sed -u -e 's/\r//' -e '/Test is disabled/d' &
	shown=$!
	# A trap interrupts this wait, but no command in the foreground.
	wait "$qemu" || echo "error: the machine did not end by itself (status $?)" >&2
	qemu=
	wait "$shown" || true
	tr -d '\r' <"$work/console" | grep -qx 'vm: all passed'
}

case $(uname -m) in
x86_64) ;;
*) fail "this runs kernels for x86-64 on x86-64 only" ;;
esac
"$tools/deps.sh" need vm
for file in sluice sluice-bench sl-load selftests/unit selftests/system; do
	[ -x "$out/$file" ] || fail "there is no $out/$file: run \`make all tests\`"
done
mkdir -p "$out/vm"
trap cleanup EXIT
trap 'exit 130' INT TERM HUP
work=$(mktemp -d "$out/vm/run.XXXXXX")
find_kernel
echo "== kernel $release"
make_root
make_initramfs
run_machine
