package train

import (
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/runtime"
)

// deviceBytes is what a device holds beside a run's values: workspace of its matrix
// products, tables, the step number.
const deviceBytes = 33 << 20

// load adds what a function's inputs take on a device, each once however many
// functions read it. The classifier's graph is one of its own where edges are refined.
func (p *predictor) load(f *ir.Func, in map[string]*runtime.Buffer) {
	for name, b := range in {
		if f.Name == "classify" && refines(p.prog) && evaluationInputs[name] {
			name = "classify." + name
		}
		p.loaded[name] = max(p.loaded[name], loadedBytes(b))
	}
}

// loadedBytes returns what a buffer of which the sizes are known takes on a device:
// elements, and of structures offsets, columns, rows and places; see
// runtime.DeviceCSR.
func loadedBytes(b *runtime.Buffer) int {
	switch {
	case b.Graph != nil && b.Graph.In != nil:
		return runtime.LoadedBytes(b)
	case b.Graph != nil:
		return 4*(b.Dims[0]+1) + 3*4*b.Dims[1]
	case b.Sparse != nil:
		stored := int(b.MemSize() / 4)
		return 4*stored + 4*(b.Dims[0]+b.Dims[1]+2) + 5*4*stored
	}
	return int(b.MemSize())
}

// onDevice makes the forecast that of a device's memory.
func (p *predictor) onDevice() {
	inputs := 0
	for _, n := range p.loaded {
		inputs += n
	}
	if by := p.cfg.Train.Select; by == "accuracy" || by == "loss" { // nodes and their labels, of 8 bytes; see scoreLogits
		inputs += 16 * (len(p.train) + p.val)
	}
	p.f.onDevice(p.device, inputs, parameterBytes(p.prog), p.searchBytes())
}

// searchBytes returns what the search for candidates takes on the device, and the choice
// where that is the device's too; 0 where the host searches or nothing is searched.
func (p *predictor) searchBytes() int {
	shape := p.embedding()
	if shape == nil {
		return 0
	}
	return p.device.CandidateBytes(shape[0], shape[1], len(p.ds.Graph.Edges), candidateOptions(p.cfg, p.ds.Graph.N, p.prog))
}

// onDevice makes the forecast that of a device's memory: all functions of a phase at
// once, what is bound to them, parameters with the optimizer's state and the best ones.
// Candidates are searched behind pre-training.
func (f *Forecast) onDevice(d runtime.Device, inputs, params, search int) {
	f.Parts = nil
	add := func(name string, bytes int) int {
		f.Parts = append(f.Parts, MemoryPart{Name: name, Bytes: bytes})
		return bytes
	}
	base := add("inputs on the device", inputs) + add("parameters, Adam's moments, best ones", 4*params) + add("workspace of matrix products", deviceBytes)
	for _, phase := range []string{"pretrain", "train"} {
		sum := base
		if phase == "train" {
			sum += search
		}
		for _, x := range f.Functions {
			if x.Phase == phase {
				sum += x.Bytes()
			}
		}
		if sum > f.Device {
			f.Device, f.Phase = sum, phase
		}
	}
	if search > 0 && f.Phase == "train" {
		add("search for candidates", search)
	}
	f.Name = d.Name()
}
