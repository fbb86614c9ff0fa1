#!/bin/sh
# Runs tests as built for Windows by wine: test.sh PACKAGE... [-run PATTERN]
# Wine 8, as Debian 12 has it, lacks two things that Go's runtime takes: bcryptprimitives.dll,
# which MinGW then makes, and a way of deleting files, in whose place Go takes its older one.
set -e
if ! command -v wine >/dev/null; then
	echo "skipped: wine is missing; on Debian and Ubuntu: apt-get install wine64 wine gcc-mingw-w64-x86-64"
	exit 0
fi
go=${GO:-go}
bin=$PWD/bin/windows
export WINEPREFIX="$bin/prefix" WINEDEBUG=-all
mkdir -p "$bin"
test -e "$WINEPREFIX/system.reg" || wine wineboot -i >"$bin/wineboot.txt" 2>&1
# What wine leaves running would otherwise hold the output of the test that started it.
wineserver -p 60 >"$bin/wineserver.txt" 2>&1 </dev/null || true
wine cmd /c exit >"$bin/wineboot.txt" 2>&1 </dev/null
overlay=
if ! test -e "$WINEPREFIX/drive_c/windows/system32/bcryptprimitives.dll"; then
	printf '%s\n' '#include <windows.h>' 'BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);' \
		'__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE p, SIZE_T n) { return SystemFunction036(p, (ULONG)n); }' >"$bin/prng.c"
	x86_64-w64-mingw32-gcc -shared -o "$bin/bcryptprimitives.dll" "$bin/prng.c" -ladvapi32
fi
if test -e "$bin/bcryptprimitives.dll"; then
	export WINEDLLOVERRIDES=bcryptprimitives=n
	cp "$bin/bcryptprimitives.dll" "$WINEPREFIX/drive_c/windows/system32/"
	of=$("$go" env GOROOT)/src/internal/syscall/windows/at_windows.go
	sed 's/case STATUS_INVALID_INFO_CLASS,/case NTStatus(0xC0000002), STATUS_INVALID_INFO_CLASS,/' "$of" >"$bin/at_windows.txt"
	echo "{\"Replace\": {\"$of\": \"$bin/at_windows.txt\"}}" >"$bin/overlay.json"
	overlay="-overlay $bin/overlay.json"
fi
# shellcheck disable=SC2086
GOOS=windows CGO_ENABLED=0 exec "$go" test $overlay -exec wine "$@"
