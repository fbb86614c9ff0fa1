module github.com/gsrc-dev/gsrc

go 1.26.0

require (
	github.com/BurntSushi/toml v1.6.0
	github.com/chewxy/hm v1.0.0
	github.com/mattn/go-isatty v0.0.24
	github.com/mmcloughlin/avo v0.5.0
	github.com/owulveryck/onnx-go v0.5.0
	github.com/rogpeppe/go-internal v1.16.0
	github.com/sbinet/npyio v0.6.0
	github.com/schollz/progressbar/v3 v3.19.1
	github.com/spf13/cobra v1.10.2
	github.com/yalue/onnxruntime_go v1.27.0
	go4.org/unsafe/assume-no-moving-gc v0.0.0-20231121144256-b99613f794b6
	golang.org/x/sys v0.49.0
	gonum.org/v1/gonum v0.17.0
	google.golang.org/protobuf v1.36.12
	gorgonia.org/gorgonia v0.9.18
	gorgonia.org/tensor v0.9.24
	honnef.co/go/tools v0.8.2
	pgregory.net/rapid v1.3.0
)
