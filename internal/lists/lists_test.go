package lists

import (
	"slices"
	"strconv"
	"testing"
)

func TestMap(t *testing.T) {
	if got := Map([]int{3, 1, 2}, strconv.Itoa); !slices.Equal(got, []string{"3", "1", "2"}) {
		t.Errorf("%q", got)
	}
	if got := Map([]int{}, strconv.Itoa); got != nil {
		t.Errorf("%q of no elements", got)
	}
}

func TestOf(t *testing.T) {
	if got := Of(3, strconv.Itoa); !slices.Equal(got, []string{"0", "1", "2"}) {
		t.Errorf("%q", got)
	}
}
