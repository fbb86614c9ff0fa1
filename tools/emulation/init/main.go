//go:build linux && amd64

// Command init is the only process of the emulated machine of avx512.sh. It runs the
// program named in /command with its output on the serial line, says with what status it
// ended, and switches the machine off.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

func main() {
	err := run()
	status := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		status = exit.ExitCode()
	case err != nil:
		fmt.Println("init:", err)
		status = 125
	}
	fmt.Printf("\nemulation: exit status %d\n", status)
	drain()
	if err := syscall.Reboot(syscall.LINUX_REBOOT_CMD_POWER_OFF); err != nil {
		fmt.Println("init: the machine stays on:", err)
	}
	select {}
}

// drain waits until the serial line has sent everything: switching off would cut it.
func drain() {
	const tcsbrk = 0x5409
	syscall.Syscall(syscall.SYS_IOCTL, os.Stdout.Fd(), tcsbrk, 1)
}

// run reads /command: variables of the environment, an empty line, then the program and
// its arguments, one a line. The program runs in /work.
func run() error {
	for _, m := range []struct{ kind, at string }{{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"tmpfs", "/tmp"}} {
		if err := os.MkdirAll(m.at, 0o755); err != nil {
			return err
		}
		if err := syscall.Mount(m.kind, m.at, m.kind, 0, ""); err != nil && !errors.Is(err, syscall.EBUSY) {
			return fmt.Errorf("mounting %s: %w", m.at, err)
		}
	}
	f, err := os.Open("/command")
	if err != nil {
		return err
	}
	defer f.Close()
	env := []string{"HOME=/tmp", "TMPDIR=/tmp", "PATH=/bin"}
	var command []string
	for lines, inEnv := bufio.NewScanner(f), true; lines.Scan(); {
		switch line := strings.TrimSuffix(lines.Text(), "\r"); {
		case inEnv && line == "":
			inEnv = false
		case inEnv:
			env = append(env, line)
		default:
			command = append(command, line)
		}
	}
	if len(command) == 0 {
		return errors.New("/command names no program")
	}
	fmt.Printf("emulation: (%s) %s\n", vectors(), strings.Join(command, " "))
	c := exec.Command(command[0], command[1:]...)
	c.Dir, c.Env, c.Stdout, c.Stderr = "/work", env, os.Stdout, os.Stdout
	return c.Run()
}

// vectors names the vector extensions that the kernel lets programs use.
func vectors() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return err.Error()
	}
	var names []string
	for _, word := range strings.Fields(string(info)) {
		if strings.HasPrefix(word, "avx") || word == "fma" {
			names = append(names, word)
		}
	}
	return strings.Join(names, " ")
}
