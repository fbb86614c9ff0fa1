package bench

import (
	"github.com/gsrc-dev/gsrc/compiler"
	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/train"
)

// Job is a model on a data set.
type Job struct {
	Data    *data.Dataset
	Model   string         // of models.All
	Options models.Options // Features and Classes are those of Data
	Anchors int            // samples of a contrastive step; 0 takes all nodes
	K       int            // nearest neighbours of a node that become candidate edges
	Threads int            // 0 is one for each processor
	Without []string       // passes to leave out

	Device runtime.Device // nil is the CPU
}

// PaperOptions are the options of the ECL-GSR paper's step as the PyTorch
// programs have it: views by Gaussian blur, three layers of 128, τ = 0.1, K = 3
// Langevin steps, structural attributes of the given width. The chain starts from
// noise of its own, and gradients are not clipped.
func PaperOptions(structWidth int) models.Options {
	o := models.Default()
	o.StructWidth, o.Encoder.Layers = structWidth, 3
	o.Views = models.Views{Blur: 0.03}
	o.ECL.Tau, o.ECL.InitNoise, o.ECL.Clip = 0.1, 0.03, 0
	return o
}

func (j *Job) config() (*config.Config, error) {
	c, err := config.Load(j.Model, "", "", nil)
	if err != nil {
		return nil, err
	}
	c.Model, c.DeepWalk.Width = j.Options, j.Options.StructWidth
	c.Train.Sampler, c.Train.Anchors, c.Train.Threads, c.Train.LR, c.Train.EncoderLR = "full", j.Anchors, j.Threads, 1e-3, 1e-3
	c.Candidates.Structure, c.Candidates.K, c.Candidates.Mutual = "refined", j.K, false
	c.Candidates.Similarity, c.Candidates.TwoStep = config.SimilarityEmbedding, 0
	return c, nil
}

// compileOnly builds the model for the data and runs the passes.
func (j *Job) compileOnly() (*compiler.Program, error) {
	c, err := j.config()
	if err != nil {
		return nil, err
	}
	task := train.Nodes(j.Data)
	m, err := task.Module(j.Model, c)
	if err != nil {
		return nil, err
	}
	return compiler.Compile(m, compiler.Options{Data: task.DataInfo(nil, c, trainSplit(j.Data)), Without: j.Without})
}

// NewSession compiles the model and binds parameters and data. Close it.
func NewSession(j Job) (*train.Session, error) {
	c, err := j.config()
	if err != nil {
		return nil, err
	}
	split := trainSplit(j.Data)
	return train.NewSession(j.Data, train.Job{Model: j.Model, Split: &split}, c, train.Options{Device: j.Device, Without: j.Without})
}
