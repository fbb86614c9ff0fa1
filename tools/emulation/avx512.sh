#!/bin/sh
# Runs a test binary on an emulated processor with AVX-512: Bochs boots a Linux kernel
# whose only process is the binary.
#
#   CGO_ENABLED=0 go test -exec "$PWD/tools/emulation/avx512.sh" -run NAME ./runtime/kernels
#
# or, with a binary that "CGO_ENABLED=0 go test -c" made,
#
#   tools/emulation/avx512.sh BINARY -test.run NAME
#
# Of files the binary finds the folder testdata of the current one. GSRC_ variables of the
# environment are handed on. The exit status is the binary's. Starting takes half a minute,
# and programs run some 50 times as slowly as outside, so choose few tests.
#
#   KERNEL  a Linux kernel, as distributions install it; "make bin/emulation/kernel" gets one
#   LIMIT   seconds until the machine is switched off, 1800 unless set
#   MEMORY  MiB, 1024 unless set
set -eu

[ $# -ge 1 ] || { sed -n '2,18s/^# \{0,1\}//p' "$0"; exit 2; }
root=$(cd "$(dirname "$0")/../.." && pwd)
for tool in bochs xorriso cpio; do
	command -v $tool >/dev/null || { echo "avx512.sh: $tool is missing. On Debian and Ubuntu: apt-get install bochs isolinux syslinux-common xorriso cpio" >&2; exit 125; }
done
: "${KERNEL:=$root/bin/emulation/kernel}" "${LIMIT:=1800}" "${MEMORY:=1024}"
[ -r "$KERNEL" ] || { echo "avx512.sh: there is no Linux kernel at $KERNEL. \"make bin/emulation/kernel\" gets one on Debian; KERNEL=FILE names another" >&2; exit 125; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/root/work" "$work/root/bin" "$work/iso"
(cd "$root" && CGO_ENABLED=0 GOOS=linux GOARCH=amd64 ${GO:-go} build -o "$work/root/init" ./tools/emulation/init)
cp "$1" "$work/root/bin/program"
# Programs that open CUDA's driver are linked dynamically, also without cgo.
for library in $(ldd "$1" 2>/dev/null | grep -o '/[^ ]*'); do
	mkdir -p "$work/root$(dirname "$library")"
	cp -L "$library" "$work/root$library"
done
[ ! -d testdata ] || cp -R testdata "$work/root/work/"
shift
{
	env | grep '^GSRC_' || true
	echo
	echo /bin/program
	for flag in "$@"; do echo "$flag"; done
} >"$work/root/command"
(cd "$work/root" && find . | cpio --quiet -H newc -o | gzip -1) >"$work/iso/initrd"
cp "$KERNEL" "$work/iso/kernel"
cp /usr/lib/ISOLINUX/isolinux.bin /usr/lib/syslinux/modules/bios/ldlinux.c32 "$work/iso/"
# Bochs describes the compact form of XSAVE wrongly: Linux, which checks, would do without
# any vector extension.
cat >"$work/iso/isolinux.cfg" <<CFG
DEFAULT linux
PROMPT 0
LABEL linux
 KERNEL /kernel
 APPEND initrd=/initrd console=ttyS0 quiet nokaslr mitigations=off noxsaves clearcpuid=xsavec,xsaves tsc=reliable panic=-1
CFG
xorriso -as mkisofs -quiet -o "$work/boot.iso" -b isolinux.bin -c boot.cat -no-emul-boot -boot-load-size 4 -boot-info-table "$work/iso" 2>/dev/null
cat >"$work/bochsrc" <<CFG
display_library: rfb, options="timeout=0"
cpu: model=corei7_skylake_x, count=1, ips=100000000, reset_on_triple_fault=0
memory: guest=$MEMORY, host=$MEMORY
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/bochs/VGABIOS-lgpl-latest
ata0-master: type=cdrom, path="$work/boot.iso", status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev="$work/serial"
log: "$work/log"
panic: action=fatal
error: action=ignore
info: action=ignore
speaker: enabled=0, mode=none
sound: driver=dummy
CFG
echo c >"$work/start" # Debian's Bochs has a debugger, which waits for a command
: >"$work/serial"
tail -f "$work/serial" | sed -u 's/\r//' &
tail=$!
timeout "$LIMIT" bochs -q -f "$work/bochsrc" -rc "$work/start" >"$work/out" 2>&1 </dev/null || true
sleep 1
kill $tail 2>/dev/null || true
status=$(tr -d '\r' <"$work/serial" | sed -n 's/^emulation: exit status //p')
if [ -z "$status" ]; then
	echo "avx512.sh: the machine stopped before the program ended (LIMIT is $LIMIT s). Bochs said:" >&2
	tail -n 5 "$work/log" "$work/out" >&2
	exit 124
fi
exit "$status"
