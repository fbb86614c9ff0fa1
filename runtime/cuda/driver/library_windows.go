package driver

import (
	"path/filepath"

	"golang.org/x/sys/windows"
)

func openLibrary(path string) (uintptr, error) {
	// A bare name means the system's folder, where the driver's installer puts it,
	// or a folder on PATH; one with a folder finds its neighbours there.
	flags := uintptr(0)
	if filepath.IsAbs(path) {
		flags = windows.LOAD_WITH_ALTERED_SEARCH_PATH
	}
	h, err := windows.LoadLibraryEx(path, 0, flags)
	return uintptr(h), err
}

func symbolAddress(library uintptr, name string) (uintptr, error) {
	return windows.GetProcAddress(windows.Handle(library), name)
}
