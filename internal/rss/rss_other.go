//go:build !unix

package rss

func maxRSS() int64 { return 0 }
