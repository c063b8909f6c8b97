# conch. `make help` lists what there is; everything works from a clone with Go and git.
SHELL := /usr/bin/env bash -o pipefail
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

BIN := bin
TOOLS := $(BIN)/tools
CONTROLLER_GEN := $(TOOLS)/controller-gen
GOLANGCI_LINT := $(TOOLS)/golangci-lint
KUSTOMIZE := $(TOOLS)/kustomize
HELM := $(TOOLS)/helm
CONTROLPLANE ?= $(CURDIR)/$(BIN)/controlplane
KUBECTL ?= $(CONTROLPLANE)/kubectl
IMAGE ?= conch:latest
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
TEST_TIMEOUT ?= 25m
# TESTFLAGS go to every `go test`, such as -json, -short, -run NAME or -count=1.
TESTFLAGS ?=
# Most of a test's time is waiting for leases, so more of them run at once than there are cores.
PARALLEL ?= 6
# RACE lists the packages that start goroutines.
RACE ?= ./pkg/lock/... ./controllers/... ./test/nodeagent/...

##@ Develop

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: fmt
fmt: $(GOLANGCI_LINT) ## Format Go files and group their imports
	$(GOLANGCI_LINT) fmt ./...

.PHONY: vet
vet: ## Run go vet
	go vet ./...
	go -C examples vet ./...

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Run golangci-lint (built once, about two minutes)
	$(GOLANGCI_LINT) run ./...

.PHONY: demo
demo: controlplane ## Two clusters, one Redis, elections, failures, takeovers; KEEP=1 leaves it running
	@hack/redis.sh || echo "no redis-server: the demo takes an embedded miniredis and leaves one scene out"
	go run ./test/demo $(if $(KEEP),-keep)

.PHONY: run
run: ## Run conch against the current kubeconfig; CONFIG=FILE
	go run ./cmd/conch --config $(or $(CONFIG),config/manager/conch.yaml)

##@ Generate

.PHONY: generate
generate: $(CONTROLLER_GEN) manifests ## Generate deep copies, the CRD and the role
	$(CONTROLLER_GEN) object paths=./api/...

.PHONY: manifests
manifests: $(CONTROLLER_GEN) ## Generate the CRD and the role from markers
	$(CONTROLLER_GEN) crd paths=./api/... output:crd:dir=config/crd/bases
	$(CONTROLLER_GEN) rbac:roleName=conch paths=./controllers/... output:rbac:dir=config/rbac
	hack/chart.sh

.PHONY: golden
golden: controlplane ## Write anew what kubectl prints, as test/api expects it
	go test ./test/api -update

##@ Test

.PHONY: controlplane
controlplane: ## Build etcd, kube-apiserver, kube-controller-manager and kubectl (once, about 12 minutes)
	CONCH_CONTROLPLANE=$(CONTROLPLANE) hack/controlplane/build.sh

.PHONY: redis
redis: ## Make sure that redis-server is there
	hack/redis.sh

.PHONY: test
test: controlplane redis $(HELM) ## Run every test against a real Redis and a real control plane
	go test -count=1 -parallel $(PARALLEL) $(TESTFLAGS) -timeout $(TEST_TIMEOUT) ./...
	go -C examples test -count=1 $(TESTFLAGS) ./...

.PHONY: race
race: controlplane redis ## Run the packages with goroutines under the race detector
	go test -race -count=1 $(TESTFLAGS) -timeout $(TEST_TIMEOUT) $(RACE)

.PHONY: soak
soak: controlplane redis $(HELM) ## Run every test at full counts and durations (hours)
	CONCH_SOAK=full go test -count=1 -parallel $(PARALLEL) -timeout 4h ./...

.PHONY: bench-handover
bench-handover: controlplane redis ## Time 100 handovers in one cluster
	go run ./test/handover

.PHONY: rollouts
rollouts: controlplane redis ## Roll workloads of every kind 100 times; N=COUNT
	go run ./test/rollouts $(if $(N),-n $(N))

.PHONY: ticks
ticks: controlplane redis ## Run 200 ticks of a CronJob in two clusters under kills and cuts; TICKS=COUNT SEED=SEED
	go run ./test/ticks $(if $(TICKS),-n $(TICKS)) $(if $(SEED),-seed $(SEED))

.PHONY: readme-test
readme-test: ## Run the README's commands from a fresh clone
	hack/readme-test.sh

##@ Verify

.PHONY: verify
verify: verify-generated verify-format vet verify-imports lint ## Check generated files, format, vet, import rules and lint

.PHONY: verify-generated
verify-generated: $(CONTROLLER_GEN) ## Check that generated files are current
	CONTROLLER_GEN=$(CONTROLLER_GEN) hack/verify/generated.sh

.PHONY: verify-format
verify-format: ## Check gofmt
	hack/verify/format.sh

.PHONY: verify-imports
verify-imports: ## Check who imports whom
	go test ./hack/verify

##@ Build

.PHONY: build
build: ## Build the commands into bin/
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o $(BIN)/ ./cmd/...

.PHONY: image
image: ## Build the container image; IMAGE=NAME
	docker build --build-arg VERSION=$(VERSION) -t $(IMAGE) .

.PHONY: tools
tools: $(CONTROLLER_GEN) $(GOLANGCI_LINT) $(KUSTOMIZE) $(HELM) ## Build the pinned tools into bin/tools

# The pins stand in hack/tools/go.mod; a change there builds them anew.
$(CONTROLLER_GEN): PKG = sigs.k8s.io/controller-tools/cmd/controller-gen
$(GOLANGCI_LINT): PKG = github.com/golangci/golangci-lint/v2/cmd/golangci-lint
$(KUSTOMIZE): PKG = sigs.k8s.io/kustomize/kustomize/v5
$(CONTROLLER_GEN) $(GOLANGCI_LINT) $(KUSTOMIZE): hack/tools/go.mod hack/tools/go.sum
	@mkdir -p $(TOOLS)
	CGO_ENABLED=0 go -C hack/tools build -trimpath -ldflags "-s -w" -o $(CURDIR)/$@ $(PKG)

$(HELM): hack/helm/go.mod hack/helm/go.sum
	@mkdir -p $(TOOLS)
	CGO_ENABLED=0 go -C hack/helm build -trimpath -ldflags "-s -w" -o $(CURDIR)/$@ helm.sh/helm/v4/cmd/helm

##@ Deploy

.PHONY: install
install: ## Apply the CRD to the current cluster
	$(KUBECTL) apply -k config/crd

.PHONY: deploy
deploy: $(KUSTOMIZE) ## Apply everything to the current cluster; IMAGE=NAME
	dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && cp -r config "$$dir" && \
	(cd "$$dir/config/manager" && $(CURDIR)/$(KUSTOMIZE) edit set image conch=$(IMAGE)) && \
	$(KUSTOMIZE) build "$$dir/config/default" | $(KUBECTL) apply -f -

.PHONY: undeploy
undeploy: ## Remove conch but keep the CRD and the locks, so that what runs goes on
	$(KUBECTL) delete --ignore-not-found -k config/manager
