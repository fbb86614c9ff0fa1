package rss

import (
	"runtime"
	"slices"
	"testing"
	"time"
)

// What is held while the process is at a stage is that stage's, and not that of others.
func TestStages(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("memory of one's own is Linux's")
	}
	if Stages() != nil {
		t.Error("there are stages that nobody has watched")
	}
	Watch(time.Millisecond)
	Watch(time.Millisecond) // is one
	Enter("before")
	time.Sleep(20 * time.Millisecond)
	before := Enter("large")
	held := make([]byte, 64<<20)
	for i := 0; i < len(held); i += 4096 {
		held[i] = 1
	}
	time.Sleep(20 * time.Millisecond)
	Leave(before)
	time.Sleep(20 * time.Millisecond)
	runtime.KeepAlive(held)
	list := Stages()
	of := func(name string) Stage {
		i := slices.IndexFunc(list, func(s Stage) bool { return s.Name == name })
		if i < 0 {
			t.Fatalf("there is no stage %s in %+v", name, list)
		}
		return list[i]
	}
	if of("before").Time < 30*time.Millisecond || of("large").Time < 10*time.Millisecond || of("large").Own < 64<<20 || of("large").Mapped == 0 {
		t.Errorf("%+v", list)
	}
	time.Sleep(5 * time.Millisecond)
	if Stages() != nil {
		t.Error("it is still watched")
	}
}

// A stage is told of however short it was.
func TestShortStages(t *testing.T) {
	defer Leave(Enter("all"))
	Watch(time.Hour)
	Leave(Enter("short"))
	var names []string
	for _, s := range Stages() {
		names = append(names, s.Name)
	}
	if !slices.Equal(names, []string{"all", "short"}) {
		t.Errorf("the stages are %q", names)
	}
}
