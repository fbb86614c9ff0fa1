package train

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What cannot be trained is refused with the option that asks for it, before there is a folder.
func TestRefusedBeforeTheFolder(t *testing.T) {
	ds := synthetic(t, 1)
	for _, c := range []struct{ model, set, want string }{
		{"grcn", "train.pretrain_steps=3", "train.pretrain_steps=3 asks for steps that grcn has none of (its program has no function @pretrain): set it to 0"},
		{"lds", "train.pretrain_steps=1", "train.pretrain_steps=1 asks for steps that lds has none of"},
		{"stable", "train.joint_every=4", "train.joint_every=4 asks for steps that stable has none of (its program has no function @joint): set it to 0"},
		{"stable", "candidates.structure=raw", "candidates.structure=raw leaves the encoder out, whose embedding the classifier of stable reads: take refined, or"},
		{"sublime", "train.sampler=edges", "train.sampler=edges does not work for sublime: its contrastive steps learn edges of all nodes; take full"},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		cfg := configure(t, c.model, "train.pretrain_steps=0", "train.joint_every=0", c.set)
		_, err := Train(context.Background(), Job{Model: c.model, Task: Nodes(ds)}, cfg, Options{Dir: dir})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %s: %v, want %q", c.model, c.set, err, c.want)
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s with %s: the folder is there (%v)", c.model, c.set, err)
		}
	}
}
