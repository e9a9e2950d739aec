# Two commands need only Go: `go run ./cmd/strandline demo` and `go test ./...`. Everything else is here; each target installs what it needs.
BIN ?= bin/strandline
export CGO_ENABLED = 0

.PHONY: build fault dist test race lint fuzz interop chaos demo ci alerts

build:
	go build -trimpath -ldflags "-s -w" -o $(BIN) ./cmd/strandline

# The test binary: bytes reach the operating system only at sync, so kill -9 is a power cut.
fault:
	go build -trimpath -tags fault -o $(BIN)-fault ./cmd/strandline

# Archives, Debian packages and their checksums, in ./dist; the same commit gives the same bytes.
dist:
	deploy/dist

test:
	go test ./...

race:
	.ci/race

lint:
	.ci/lint

fuzz:
	.ci/fuzz $(FUZZTIME)

# Thirteen foreign clients in six languages and Kafka's own tools against the built binary, and franz-go
# against three nodes of which a leader is killed; .ci/interop says more.
interop: build
	.ci/interop

# Real processes killed at random moments; ROUNDS says how often. Then three nodes: every named drill, and random faults for MINUTES.
chaos:
	go test ./test/chaos -count=1 -v -timeout 60m -chaos.rounds $(or $(ROUNDS),50) -chaos.fault-rounds $(or $(FAULT_ROUNDS),20)
	go test ./test/chaos -count=1 -v -timeout 180m -run 'TestDrill|TestRandom' -chaos.drill all -chaos.drills $(or $(DRILLS),5) -chaos.minutes $(or $(MINUTES),10) -chaos.progress 10s
	go test ./test/chaos -count=1 -v -timeout 180m -run TestRandom -chaos.mode liveness -chaos.minutes $(or $(MINUTES),10) -chaos.progress 10s

# Alert rules against recorded drills, with promtool.
alerts:
	.ci/alerts

demo:
	go run ./cmd/strandline demo

ci:
	bash .ci/run
