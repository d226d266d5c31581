# make lists the targets; make check is what CI runs.
# tools/*.sh hold what takes more than a line, so that CI needs no make.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
MAKEFLAGS += --warn-undefined-variables --no-builtin-rules --no-print-directory

# Set to use another Go: GO=go1.27rc1 make test
GO ?= go
# One way to build for all targets, so that nothing is compiled twice.
export GOFLAGS := -trimpath $(filter-out -trimpath,$(GOFLAGS))
export CGO_ENABLED ?= 0
# The packages of test, test-short and race, and flags for go test. Empty: all packages that have tests.
PKGS ?=
TESTFLAGS ?=
# Tests of the whole system have this prefix. They run in test-system.
SYSTEM := ^TestSystem
# The packages with other tests, those that take longest first. Those with benchmarks alone are not linked.
TESTED = $(shell { echo github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream; tools/packages.sh '(Test|Fuzz|Example)' | grep -vE ' Test(Main|System.*)$$' | cut -d' ' -f1 | sort -ru; } | awk '!n[$$0]++')
# How long fuzz searches for each function: 30s, or 1000x for 1,000 inputs.
FUZZTIME ?= 30s
# The paths that language checks; empty: the whole repository.
PATHS ?=
# Flags for the simulator in soak.
SOAKFLAGS ?=
# The commit that breaking compares with; empty: the newest tag, else the parent commit.
export AGAINST ?=
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*?## "} /^[a-z-]+:.*?## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## See an agent fix a program, without an API key
	@tools/build.sh bin/harness -ldflags '-X main.version=$(VERSION)'
	@bin/harness demo

.PHONY: mesh
mesh: ## Run the mesh on this machine, a process per role, until Ctrl-C
	@tools/mesh.sh

.PHONY: build
build: ## Build bin/harness
	@tools/build.sh bin/harness -ldflags '-X main.version=$(VERSION)'

# Without vet, which lint runs. Many tests wait, so more run at a time than two cores would allow.
.PHONY: test
test: ## Run the Go tests, for four minutes on two cores
	@echo "go test: on two cores five minutes, and four more the first time for compiling"
	@$(GO) test -vet=off -p 4 -parallel 6 -skip '$(SYSTEM)' $(TESTFLAGS) $(or $(PKGS),$(TESTED))

.PHONY: test-short
test-short: ## Run the quick Go tests: no servers, no built programs
	@echo "go test -short: on two cores a minute and a half, and four more the first time for compiling"
	@$(GO) test -vet=off -p 3 -parallel 6 -short -skip '$(SYSTEM)' $(TESTFLAGS) $(or $(PKGS),$(shell tools/quick.sh $(TESTED)))

.PHONY: test-system
test-system: ## Run the long proofs: meshes whose processes die, thousands of seeds, random faults, the gym, hand-overs
	@tools/system.sh $(TESTFLAGS)

.PHONY: race
race: ## Run all Go tests under the race detector (needs a C compiler)
	CGO_ENABLED=1 $(GO) test -race $(TESTFLAGS) $(or $(PKGS),./...)

.PHONY: test-wire
test-wire: ## Run against independent implementations of the provider APIs and of MCP (needs npm and Python)
	npm ci --prefix test/wire --no-audit --no-fund
	$(GO) test -tags wire $(TESTFLAGS) ./test/wire/...

.PHONY: test-clients
test-clients: ## Test the clients in Python and TypeScript against a real server, and all together (needs Python and npm)
	clients/python/test.sh
	clients/typescript/test.sh
	$(GO) test -tags polyglot $(TESTFLAGS) ./test/polyglot

.PHONY: sandbox-usable
sandbox-usable: ## Compare 200 commands of public projects in the sandbox with outside, for about an hour (needs the package registries)
	$(GO) test -tags usable -count=1 -timeout 4h -v $(TESTFLAGS) ./test/usable

.PHONY: test-deploy
test-deploy: ## Test the manifests, the dashboard and the alerts against the program
	$(GO) -C deploy/k8s/verify test $(TESTFLAGS) ./...
	$(GO) -C deploy/observe test $(TESTFLAGS) ./...

.PHONY: soak
soak: ## Run for hours what CI runs shortly: 100,000 seeds of the simulator (SOAKFLAGS='-from 100000' for others), 20 kills at each failpoint of the mesh, larger state spaces, every scenario of the conformance suite of MCP, a server whose clock goes back, half an hour of random faults
	$(GO) test ./test/simulation -run '^TestSeeds$$' -timeout 24h -v -seeds 100000 -progress $(SOAKFLAGS)
	$(GO) test ./test/explore -timeout 24h -large
	$(GO) test -tags shifted ./test/mesh -timeout 24h -rounds 20 -cuts 200 -serverkills 100
	npm ci --prefix test/wire --no-audit --no-fund
	$(GO) test -tags wire ./test/wire -run Conformance -every
	$(GO) test ./test/chaos -timeout 24h -length 30m -v -seed $$(date +%s)

.PHONY: check
check: ## Run all that CI runs: tests, lint, drift, breaking changes, race, clients, deployment, benchmarks once
	@.ci/run

.PHONY: generate
generate: ## Regenerate pkg/gen and the stubs of the clients from proto/, and the indexes of pkg/tokens (needs Python and npm)
	@tools/generate.sh

.PHONY: drift
drift: ## Fail unless what make generate writes is up to date
	@tools/generate.sh --check

.PHONY: lint
lint: ## Lint protobuf and Go, formats and import directions included
	@tools/lint.sh

.PHONY: language
language: ## Report words that the project does not use (PATHS='docs README.md' for these only)
	@$(GO) -C tools run ./language check $(PATHS)

.PHONY: fmt
fmt: ## Format protobuf and Go
	@tools/format.sh

.PHONY: lint-test
lint-test: ## Prove that each lint rule reports its breach, and test the tools
	$(GO) -C tools test -count=1 ./...

.PHONY: breaking
breaking: ## Fail if proto/ breaks what an earlier commit wrote (AGAINST=commit)
	@tools/breaking.sh

.PHONY: fuzz-seeds
fuzz-seeds: ## Run every fuzz seed and committed finding once
	@tools/fuzz.sh seeds

.PHONY: fuzz
fuzz: ## Fuzz each function for FUZZTIME (30s)
	@tools/fuzz.sh $(FUZZTIME)

.PHONY: bench
bench: ## Run the benchmark scenarios of bench/
	$(GO) test -run '^$$' -bench . -benchmem ./bench/...

.PHONY: bench-once
bench-once: ## Run each benchmark of the tree once
	@tools/bench.sh

.PHONY: gym
gym: ## Run the gym of failing models and write its tables into docs/gym.md
	$(GO) test ./bench/gym -count=1 -run '^Test(SystemGym|Trees|SystemToolsOfServers)$$' -table ../../docs/gym.md

.PHONY: quality
quality: ## Run models whose work is judged and write the tables into docs/quality-bench.md
	$(GO) test ./bench/quality -count=1 -run '^TestQuality$$' -table ../../docs/quality-bench.md

.PHONY: clean
clean: ## Delete bin, .cache and the npm packages of the wire tests
	rm -rf bin .cache test/wire/node_modules
