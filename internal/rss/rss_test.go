package rss

import (
	"os"
	"runtime"
	"testing"
)

func TestPeak(t *testing.T) {
	if runtime.GOOS == "windows" {
		if Peak() != 0 || Of(os.Getpid()) != 0 {
			t.Error("memory is known where nothing asks for it")
		}
		return
	}
	before := Peak()
	held := make([]byte, 64<<20)
	for i := 0; i < len(held); i += 4096 {
		held[i] = 1
	}
	if after := Peak(); before <= 0 || after < before || after < 32<<20 {
		t.Errorf("the peak is %d, and %d with 64 MiB more", before, after)
	}
	if now := Of(os.Getpid()); runtime.GOOS == "linux" && now < 32<<20 {
		t.Errorf("%d bytes are resident", now)
	}
	runtime.KeepAlive(held)
	if Of(-1) != 0 {
		t.Error("a process that does not exist holds memory")
	}
}
