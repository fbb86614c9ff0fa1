package ort

import (
	"bytes"
	"cmp"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// libraryFacts is what a shared library file says about itself.
type libraryFacts struct {
	goos, goarch string
	version      string // "1.27.0"; empty where the file does not say
}

// The processors of each format by Go's names.
var (
	elfArch   = map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}
	machoArch = map[macho.Cpu]string{macho.CpuAmd64: "amd64", macho.CpuArm64: "arm64"}
	peArch    = map[uint16]string{pe.IMAGE_FILE_MACHINE_AMD64: "amd64", pe.IMAGE_FILE_MACHINE_ARM64: "arm64"}
)

// identify reads platform and version out of a shared library without loading
// it, so that an unfit library is refused before it is opened in this process.
func identify(path string) (libraryFacts, error) {
	f, err := os.Open(path)
	if err != nil {
		return libraryFacts{}, err
	}
	defer f.Close()
	var magic [4]byte
	if _, err := io.ReadFull(f, magic[:]); err != nil {
		return libraryFacts{}, fmt.Errorf("%s is too short to be a shared library", path)
	}
	var facts libraryFacts
	switch {
	case string(magic[:]) == elf.ELFMAG:
		facts, err = identifyELF(f)
	case string(magic[:2]) == "MZ":
		facts, err = identifyPE(f)
	case magic == [4]byte{0xcf, 0xfa, 0xed, 0xfe}:
		facts, err = identifyMachO(f)
	default:
		err = errors.New("it is no ELF, Mach-O (64-bit) or PE file")
	}
	if err != nil {
		return libraryFacts{}, fmt.Errorf("%s is not a usable shared library: %w", path, err)
	}
	return facts, nil
}

func identifyELF(r io.ReaderAt) (libraryFacts, error) {
	f, err := elf.NewFile(r)
	if err != nil {
		return libraryFacts{}, err
	}
	if f.Type != elf.ET_DYN {
		return libraryFacts{}, fmt.Errorf("its ELF type is %v, not ET_DYN", f.Type)
	}
	facts := libraryFacts{goos: "linux", goarch: cmp.Or(elfArch[f.Machine], f.Machine.String())}
	// onnxruntime tags its exported functions with a version such as VERS_1.27.0.
	versions, err := f.DynamicVersions()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return libraryFacts{}, err
	}
	for _, v := range versions {
		if s, ok := strings.CutPrefix(v.Name, "VERS_"); ok {
			facts.version = s
		}
	}
	return facts, nil
}

func identifyMachO(r io.ReaderAt) (libraryFacts, error) {
	f, err := macho.NewFile(r)
	if err != nil {
		return libraryFacts{}, err
	}
	facts := libraryFacts{goos: "darwin", goarch: cmp.Or(machoArch[f.Cpu], f.Cpu.String())}
	// LC_ID_DYLIB: command, size, name offset, time stamp, current version as
	// 16.8.8 bits, compatibility version.
	const idDylib = 0xd
	for _, l := range f.Loads {
		raw := l.Raw()
		if len(raw) >= 24 && f.ByteOrder.Uint32(raw) == idDylib {
			v := f.ByteOrder.Uint32(raw[16:])
			facts.version = fmt.Sprintf("%d.%d.%d", v>>16, v>>8&0xff, v&0xff)
		}
	}
	return facts, nil
}

func identifyPE(r io.ReaderAt) (libraryFacts, error) {
	f, err := pe.NewFile(r)
	if err != nil {
		return libraryFacts{}, err
	}
	facts := libraryFacts{goos: "windows", goarch: cmp.Or(peArch[f.Machine], fmt.Sprintf("machine 0x%x", f.Machine))}
	// The resource section holds one VS_FIXEDFILEINFO, which begins with a
	// signature and its own version and then the file's version; onnxruntime
	// puts a date where the patch number should be, so two numbers it is.
	if rsrc := f.Section(".rsrc"); rsrc != nil {
		data, err := rsrc.Data()
		if err != nil {
			return libraryFacts{}, err
		}
		i := bytes.Index(data, []byte{0xbd, 0x04, 0xef, 0xfe})
		if i >= 0 && len(data) >= i+12 {
			v := binary.LittleEndian.Uint32(data[i+8:])
			facts.version = fmt.Sprintf("%d.%d", v>>16, v&0xffff)
		}
	}
	return facts, nil
}

// checkFit reports why a library with these facts cannot serve on a platform.
// An unknown version passes: opening the library then gives the answer.
func (f libraryFacts) checkFit(goos, goarch string) error {
	if f.goos != goos || f.goarch != goarch {
		return fmt.Errorf("it is made for %s/%s, this program runs on %s/%s", f.goos, f.goarch, goos, goarch)
	}
	var major, minor int
	if _, err := fmt.Sscanf(f.version, "%d.%d", &major, &minor); err != nil {
		return nil
	}
	if major != minMajor || minor < minMinor {
		return fmt.Errorf("it is onnxruntime %s, and gsrc needs %d.%d or a later %d.x", f.version, minMajor, minMinor, minMajor)
	}
	return nil
}
