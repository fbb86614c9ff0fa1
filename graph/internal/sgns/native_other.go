//go:build !amd64

package sgns

var native = Go
