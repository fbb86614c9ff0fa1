# gsrc needs Go (the version in go.mod, which the go command fetches by itself)
# and a C compiler for onnxruntime sessions. onnxruntime itself is found or
# fetched by "gsrc doctor".

GO      ?= go
OUT     ?= results/demo
FUZZTIME ?= 10s
PLATFORMS ?= linux/amd64 linux/arm64 darwin/arm64 windows/amd64

.PHONY: help build build-beam setup demo test bench bench-baselines bench-peers bench-exports company bench-serve kill-serve conformance conformance-flink bench-flink conformance-short conformance-serving repro lint race fuzz-short ptx ptxas gpu-check cross test-windows bits-arm64 bits-avx512 clean

help: ## show this help
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/gsrc
	@mkdir -p bin
	$(GO) build -o bin/gsrc ./cmd/gsrc

build-beam: ## build bin/gsrc-beam, a module of its own (docs/beam.md)
	@mkdir -p bin
	cd beam && $(GO) build -o ../bin/gsrc-beam .

setup: build ## build, and obtain onnxruntime if this machine lacks it
	bin/gsrc doctor

demo: setup ## train, refine, export and verify on five generated graphs (two minutes at most)
	bin/gsrc demo --out $(OUT) --force

# Tests that need onnxruntime are skipped where it cannot be had, and those on real data
# where GSRC_DATA does not name a folder of data sets.
test: build ## run all tests and count them
	-bin/gsrc doctor
	$(GO) build -o bin/testcount ./tools/testcount
	for module in . beam; do (cd $$module && $(GO) test -json -timeout 30m -ldflags='-s -w' $(TESTFLAGS) ./...); done | bin/testcount

bench: ## run the Go benchmarks; "bin/gsrc bench" has whole steps, against the machine's limits
	$(GO) test -run '^$$' -bench . -benchmem $(BENCHFLAGS) ./runtime/... ./graph/... ./data/... ./export/...

# The baselines need several GB; BASELINES_PYTHON names a Python that has them already.
BASELINES_PYTHON ?= $(PEERS_PYTHON)
BASELINESFLAGS   ?= $(PEERSFLAGS)

bin/baselines/installed: lab/bench/baselines/requirements.txt
	python3 -m venv bin/baselines
	bin/baselines/bin/pip install --quiet -r lab/bench/baselines/requirements.txt
	@touch $@

bench-baselines: build $(if $(BASELINES_PYTHON),,bin/baselines/installed) ## time PyTorch on the same work in turn with gsrc (BASELINES_PYTHON, BASELINESFLAGS)
	@mkdir -p results
	bin/gsrc bench --baselines $(or $(BASELINES_PYTHON),bin/baselines/bin/python) --json results/baselines.json --markdown $(BASELINESFLAGS)

bench-peers: bench-baselines # its earlier name

EXPORTSFLAGS ?=

bench-exports: $(if $(BASELINES_PYTHON),,bin/baselines/installed) ## time exported GCNs in onnxruntime in turn with PyTorch Geometric's export (BASELINES_PYTHON, EXPORTSFLAGS)
	$(GO) run ./tools/bench-exports -python $(or $(BASELINES_PYTHON),bin/baselines/bin/python) $(EXPORTSFLAGS)

# What the walk through a company's tables trains; COMPANYFLAGS are options of gsrc train.
COMPANY      ?= results/company
COMPANYFLAGS ?=

company: setup $(if $(BASELINES_PYTHON),,bin/baselines/installed) ## walk 50,000 customers from their tables to answers, scikit-learn beside it (docs/company.md; BASELINES_PYTHON, COMPANYFLAGS)
	bin/gsrc data generate $(COMPANY)/data
	bin/gsrc train sage --data $(COMPANY)/data --label churned --weight amount --merge sum --weight-transform log1p --split random:0.6,0.2,0.2 --out $(COMPANY)/run --force $(COMPANYFLAGS)
	bin/gsrc train ecl-gsr --data $(COMPANY)/data --label churned --split random:0.6,0.2,0.2 --set train.pretrain_steps=0 --set train.epochs=1 --baselines off --out $(COMPANY)/refined --force
	bin/gsrc refine $(COMPANY)/refined --ranked --threshold 0.5 --out $(COMPANY)/ranked.csv
	bin/gsrc build $(COMPANY)/run --with-columns --out $(COMPANY)/dist
	bin/gsrc predict $(COMPANY)/dist --data $(COMPANY)/data --out $(COMPANY)/predictions.csv
	$(or $(BASELINES_PYTHON),bin/baselines/bin/python) examples/company.py $(COMPANY)/dist $(COMPANY)/data $(COMPANY)/predictions.csv
	$(or $(BASELINES_PYTHON),bin/baselines/bin/python) lab/bench/baselines/company.py $(COMPANY)/data $(COMPANY)/run sage=$(COMPANY)/predictions.csv

SERVEFLAGS ?=

bench-serve: build ## load "gsrc serve" with questions while its graph grows, and check every answer (SERVEFLAGS)
	$(GO) run ./tools/bench-serve $(SERVEFLAGS)

kill-serve: ## kill a process that keeps a journal at 50 random moments, and look for every answered update (KILLS)
	GSRC_KILLS=$(or $(KILLS),50) $(GO) test -count 1 -run TestKilled -v ./infer

bin/tritonclient/installed:
	python3 -m venv bin/tritonclient
	bin/tritonclient/bin/pip install --quiet "tritonclient[all]==2.73.0"
	@touch $@

# PYTHON is one that has tritonclient already.
conformance-serving: build $(if $(PYTHON),,bin/tritonclient/installed) ## ask "gsrc serve" with Triton's public client, over HTTP and gRPC (PYTHON)
	tools/conformance/engines/serving/run.sh bin/gsrc $(or $(PYTHON),bin/tritonclient/bin/python)

CONFORMANCEFLAGS ?=

conformance: ## run exported models in other runtimes and write docs/conformance.md; what they need is installed (CONFORMANCEFLAGS, such as -only node,java)
	$(GO) run ./tools/conformance -report docs/conformance.md $(CONFORMANCEFLAGS)

conformance-short: ## build all exports of make conformance, and run those of one model in the runtimes that are quick to install
	$(GO) run ./tools/conformance -short -out results/conformance-short $(CONFORMANCEFLAGS)

# Needs Java and Maven.
bin/flink/installed: beam/flink/pom.xml
	mvn -q -B -f beam/flink/pom.xml dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$(CURDIR)/bin/flink
	@touch $@

FLINKFLAGS ?= -run 'TestPredict$$|TestRefine|TestBadFiles|TestKilledWorker'

conformance-flink: bin/flink/installed ## run the pipelines of beam/ on a local Flink by Beam's job server (FLINKFLAGS, such as -run TestBadFiles)
	cd beam && flink/run.sh $(CURDIR)/bin/flink $(GO) test ./pipeline -timeout 30m -count 1 $(FLINKFLAGS) -args

FLINK      ?= results/flink
FLINKNODES ?= 1000000
FLINKWIDTH ?= 32
FLINKPARTS ?= 16
FLINKHEAP  ?= 3g

bench-flink: build build-beam bin/flink/installed ## refine a generated graph on a local Flink and print what each stage takes (FLINKNODES, FLINKWIDTH, FLINKPARTS, FLINKHEAP)
	rm -rf $(FLINK)
	bin/gsrc data generate --out $(FLINK)/small --nodes 20000 --edges 100000 --wrong 0.05 --width $(FLINKWIDTH) --seed 400
	bin/gsrc data generate --out $(FLINK)/graph --nodes $(FLINKNODES) --edges $$((5 * $(FLINKNODES))) --wrong 0.05 --width $(FLINKWIDTH) --seed 403
	bin/gsrc train ecl-gsr --data $(FLINK)/small --out $(FLINK)/run --baselines off --set model.classifier=linear --set train.pretrain_steps=20 --set train.joint_every=0 --set train.epochs=5 \
		--set model.edges.judge=embedding --set candidates.similarity=embedding --set candidates.two_step=0 --set model.encoder.hidden=$(FLINKWIDTH) --set model.encoder.projection=16
	bin/gsrc-beam shards --data $(FLINK)/graph --out $(FLINK)/shards --files 64
	FLINK_TIMES=1 FLINK_PARALLELISM=$(FLINKPARTS) FLINK_HEAP=$(FLINKHEAP) FLINK_MANAGED=10g FLINK_NETWORK=1g beam/flink/run.sh bin/flink bin/gsrc-beam refine --model $(FLINK)/run --nodes '$(FLINK)/shards/nodes-*.parquet' --edges '$(FLINK)/shards/edges-*.parquet' --out $(FLINK)/out --search buckets --stages

repro: build ## repeat the paper's evaluation into results/ and docs/results.md (REPROFLAGS, such as --only cora)
	bin/gsrc repro all --report docs/results.md $(if $(BASELINES_PYTHON),--baselines $(BASELINES_PYTHON)) $(REPROFLAGS)

lint: ## gofmt, go vet, staticcheck
	@files=$$(git ls-files -co --exclude-standard '*.go' | xargs gofmt -l); \
	if [ -n "$$files" ]; then echo "gofmt would change:"; echo "$$files"; exit 1; fi
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	$(GO) build -o bin/staticcheck honnef.co/go/tools/cmd/staticcheck
	cd beam && $(GO) vet ./... && ../bin/staticcheck ./...

# Without cmd/gsrc, whose tests limit the address space, which the race detector fills.
race: ## run the tests of what works in parallel with Go's race detector (RACEFLAGS, such as -run Pipeline)
	$(GO) test -race -short $(RACEFLAGS) ./infer/... ./runtime/... ./graph/... ./data/store/... ./auto/... ./internal/...

# A target that would take more address space than this, in KiB, fails. Go maps about
# 1.5 GiB of it without using it.
FUZZMEMORY ?= 4194304

fuzz-short: ## run every fuzz target for FUZZTIME (10s), within FUZZMEMORY
	@set -e; for package in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
			echo "$$package $$target"; \
			(ulimit -v $(FUZZMEMORY); $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x $$package); \
		done; \
	done

ptx: ## compile the CUDA kernels again, with clang 14
	$(GO) run ./runtime/cuda/ptx/generate

# PTXAS names an assembler that is here already.
PTXAS ?=

bin/cuda/installed:
	python3 -m venv bin/cuda
	bin/cuda/bin/pip install --quiet nvidia-cuda-nvcc-cu12==12.9.86
	@touch $@

ptxas: $(if $(PTXAS),,bin/cuda/installed) ## assemble the CUDA kernels for every architecture and write docs/gpu-kernels.md (PTXAS)
	$(GO) run ./runtime/cuda/ptx/generate -ptxas $(or $(PTXAS),$$(echo bin/cuda/lib/python3*/site-packages/nvidia/cuda_nvcc/bin/ptxas))

# What is timed at the end.
GPUBENCH ?= step/ecl/cora/512,step/recipe/cora/fit,step/gcn/cora,search/cora

# Self-contained: the test binaries in bin/gpu can be copied to the machine with the GPU
# and run there as below. Data are generated.
gpu-check: ## check the CUDA kernels and training on this machine's GPU, and time steps (GPUBENCH, such as step,scale)
	@mkdir -p bin/gpu
	$(GO) test -c -o bin/gpu/driver.test ./runtime/cuda/driver
	$(GO) test -c -o bin/gpu/kernels.test ./runtime/cuda
	$(GO) test -c -o bin/gpu/train.test ./train
	bin/gpu/driver.test -test.v -test.run '^TestOnEveryDriver$$/^GPU$$'
	GSRC_GPU=1 bin/gpu/kernels.test -test.v -test.run '^TestDevice'
	GSRC_GPU=1 bin/gpu/train.test -test.v -test.run '^TestCUDA(Runs|Resumes|Replays|Searches|Without|Padded)'
	$(GO) build -o bin/gpu/gsrc ./cmd/gsrc
	@if bin/gpu/gsrc doctor | grep -q '^GPU '; then set -x; bin/gpu/gsrc bench --device cuda --only '$(GPUBENCH)' --markdown; \
	else echo "no GPU on this machine: nothing was timed"; fi

cross: ## compile everything without cgo, and link gsrc, for Linux, macOS, Windows and arm64 (PLATFORMS)
	@set -e; for platform in $(PLATFORMS); do \
		echo "build $$platform without cgo"; \
		export CGO_ENABLED=0 GOOS=$${platform%/*} GOARCH=$${platform#*/}; \
		$(GO) list -export ./... >/dev/null; \
		$(GO) build -ldflags='-s -w' -o /dev/null ./cmd/gsrc; \
	done

# What keeps files whole, and holds what is read against what was written.
WINDOWS_PACKAGES ?= ./internal/filelock ./internal/atomicfile ./internal/wal ./internal/safetensors ./internal/budget ./internal/download ./export/manifest ./data ./data/store
WINDOWS_RUNS     ?= TestTwoWritersOfARun|TestKilledBeforeItBegan|TestSameBits

test-windows: ## run tests of files and locks as built for Windows, by wine (WINDOWS_PACKAGES)
	GO=$(GO) tools/windows/test.sh $(TESTFLAGS) $(WINDOWS_PACKAGES)
	GO=$(GO) tools/windows/test.sh $(TESTFLAGS) -run '$(WINDOWS_RUNS)' ./train

# Tests of what must not depend on the processor, and the packages that have them.
BITS          ?= Bits
ARM64_ROOT    ?= /usr/aarch64-linux-gnu
BITS_PACKAGES ?= ./internal/fmath ./graph/internal/sgns ./runtime/kernels ./train

bits-arm64: ## run the tests named *Bits* as an arm64 processor would, by qemu-user (BITS, BITS_PACKAGES)
	@command -v qemu-aarch64 >/dev/null && test -e $(ARM64_ROOT)/lib/ld-linux-aarch64.so.1 || \
		{ echo "qemu-aarch64 or arm64's C library is missing; on Debian and Ubuntu: apt-get install qemu-user libc6-arm64-cross"; exit 1; }
	CGO_ENABLED=0 GOARCH=arm64 $(GO) test -exec 'qemu-aarch64 -L $(ARM64_ROOT)' -run '$(BITS)' $(TESTFLAGS) $(BITS_PACKAGES)

bin/emulation/kernel:
	@mkdir -p bin/emulation
	cd bin/emulation && apt-get download $$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: //p') && dpkg -x linux-image-*.deb unpacked
	mv bin/emulation/unpacked/boot/vmlinuz-* $@
	rm -r bin/emulation/unpacked bin/emulation/linux-image-*.deb

bits-avx512: bin/emulation/kernel ## run the tests named *Bits* with AVX-512, by Bochs (BITS, BITS_PACKAGES)
	GSRC_ISA=avx512 CGO_ENABLED=0 $(GO) test -p 1 -timeout 1h -exec '$(CURDIR)/tools/emulation/avx512.sh' -run '$(BITS)' $(TESTFLAGS) $(BITS_PACKAGES)

clean: ## remove what make built; runs and exports stay
	rm -rf bin
