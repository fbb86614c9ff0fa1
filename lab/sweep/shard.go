package sweep

import (
	"fmt"
	"strconv"
	"strings"
)

// Shard is one of several parts of a list of jobs, for as many machines. A job
// belongs to a shard by its key, so every machine can tell by itself, and the
// stores of all shards together are complete.
type Shard struct {
	Index int // from 0
	Count int // 0 and 1 are the whole list
}

// Has reports whether the job of a key is of this shard.
func (s Shard) Has(key string) bool {
	if s.Count <= 1 {
		return true
	}
	h, err := strconv.ParseUint(key[:min(15, len(key))], 16, 64)
	return err == nil && int(h%uint64(s.Count)) == s.Index
}

func (s Shard) String() string {
	if s.Count <= 1 {
		return "0/1"
	}
	return fmt.Sprintf("%d/%d", s.Index, s.Count)
}

// ParseShard reads i/n, with i from 0 to n-1.
func ParseShard(text string) (Shard, error) {
	i, n, ok := strings.Cut(text, "/")
	index, err := strconv.Atoi(i)
	count, err2 := strconv.Atoi(n)
	if !ok || err != nil || err2 != nil {
		return Shard{}, fmt.Errorf("shard %q: write it as i/n, for example 0/4 for the first of four", text)
	}
	if count < 1 || index < 0 || index >= count {
		return Shard{}, fmt.Errorf("shard %q: of %d shards the numbers are 0 to %d", text, count, max(0, count-1))
	}
	return Shard{Index: index, Count: count}, nil
}

// ShardFromEnv finds the shard that a batch system has assigned to this process:
// Kubernetes' indexed jobs in JOB_COMPLETION_INDEX, with their number in
// JOB_COMPLETIONS (which the manifest sets) or in count; Slurm's arrays in
// SLURM_ARRAY_TASK_ID, with SLURM_ARRAY_TASK_MIN and SLURM_ARRAY_TASK_COUNT.
// Without either the shard is the whole, or with a count an error. count is 0 where it
// is not known otherwise.
func ShardFromEnv(getenv func(string) string, count int) (Shard, error) {
	number := func(name string) (int, error) {
		v, err := strconv.Atoi(strings.TrimSpace(getenv(name)))
		if err != nil {
			return 0, fmt.Errorf("the environment variable %s is %q; it must be an integer", name, getenv(name))
		}
		return v, nil
	}
	index, total, first := "JOB_COMPLETION_INDEX", "JOB_COMPLETIONS", ""
	if getenv(index) == "" {
		index, total, first = "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN"
		if getenv(index) == "" && count > 0 {
			return Shard{}, fmt.Errorf("there are %d shards, but nothing says which one this is: give --shard i/%d, or set JOB_COMPLETION_INDEX or SLURM_ARRAY_TASK_ID", count, count)
		}
		if getenv(index) == "" {
			return Shard{}, nil
		}
	}
	i, err := number(index)
	if err != nil {
		return Shard{}, err
	}
	if first != "" && getenv(first) != "" {
		least, err := number(first)
		if err != nil {
			return Shard{}, err
		}
		i -= least
	}
	if count == 0 {
		if getenv(total) == "" {
			return Shard{}, fmt.Errorf("%s is %s, but nothing says how many shards there are: set %s, or give --shards n", index, getenv(index), total)
		}
		if count, err = number(total); err != nil {
			return Shard{}, err
		}
	}
	if count < 1 || i < 0 || i >= count {
		return Shard{}, fmt.Errorf("%s is %s: of %d shards the numbers are 0 to %d", index, getenv(index), count, max(0, count-1))
	}
	return Shard{Index: i, Count: count}, nil
}
