// Package shell writes arguments of command lines that are printed to be repeated.
package shell

import "strings"

// Quote returns an argument as a shell of POSIX reads it: in quotes where it has more than letters,
// digits and marks that mean nothing there.
func Quote(arg string) string {
	plain := func(r rune) bool {
		return r > 127 || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:=@%+,", r)
	}
	if arg != "" && strings.TrimLeftFunc(arg, plain) == "" {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}
