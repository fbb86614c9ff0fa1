//go:build !unix

package rss

import "time"

func maxRSS() int64 { return 0 }

// CPU is the processor time that the process has taken; 0 where that is not known.
func CPU() time.Duration { return 0 }
