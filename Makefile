# An index of commands; each can be run by hand.

.PHONY: build test bench lint generate update fuzz safety safety-run soak supply bench-wire bench-peers bench-tasks size wire documents models replicas bench-replicas bench-view release release-small release-twice channels docs

build: ## the binary, as released
	CGO_ENABLED=0 go build -trimpath -o bin/mcp-funnel ./cmd/mcp-funnel

test: ## all tests, each package once
	scripts/test

bench: ## all benchmarks
	CGO_ENABLED=0 go test -run '^$$' -bench . ./...

lint: ## golangci-lint, from its own module, with 3 GB of memory instead of 2 to take two thirds of the time
	export CGO_ENABLED=0 GOFLAGS=-trimpath GOGC=200 && $$(go -C scripts/lint tool -n golangci-lint) run ./...

generate: ## vocabularies of the token counter, the compressed module of PDFium (with zstd)
	go generate ./...

update: ## golden files and transcripts, to be read before they are committed
	CGO_ENABLED=0 go test ./session/compaction ./conformance ./conformance/savings ./conformance/investigate ./funnel/receipt ./kinds ./text/secrets -update

fuzz: ## every fuzz target for 30 seconds
	scripts/fuzz 30s

safety: ## every safety promise at full size, into docs/SAFETY.md
	scripts/safety

safety-run: ## at full size what run promises: deadlines, cancelling, no process left, rights, containment; prints the table
	SAFETY_OF="S7 S8 S9 S26 S27 S36" scripts/safety

soak: ## random calls and faults for 10 minutes; scripts/soak 6h for longer
	scripts/soak

supply: ## licences, denied versions, vulnerabilities; NOTICES.md and a bill of materials
	scripts/supply

bench-wire: ## this server beside others, into docs/WIRE.md
	scripts/bench-wire

bench-peers: ## this program beside ripgrep, jq, sed, openssl and others, into docs/SPEED.md; scripts/bench-peers -only grep/ for a part
	scripts/bench-peers

size: ## what takes the space of the program, into ARCHITECTURE.md
	scripts/size

bench-tasks: ## questions about large outputs: tokens here, whole, and cut by a client, into docs/SAVINGS.md
	CGO_ENABLED=0 go test ./conformance/savings -count=1 -v -update

wire: ## every client, transport and era, and a real browser, at full size
	scripts/wire

replicas: ## three replicas that are killed, drained and cut off from their stores, at full size
	SAFETY=full CGO_ENABLED=0 go test -count=1 -timeout 60m -v ./conformance/replicas

bench-replicas: ## three replicas under load, and the shared store beside a directory
	REPLICAS=bench CGO_ENABLED=0 go test -count=1 -timeout 60m -v -run '^TestBench' ./conformance/replicas

bench-view: ## pages of the viewer in a browser: a log of 1 GiB, JSON of 300 MiB in one line, a table of 2 M rows
	VIEW_BENCH=full CGO_ENABLED=0 go test -count=1 -timeout 60m -run '^$$' -bench . -benchtime 1x ./conformance/view

release: ## all that is published of this commit, into dist/; nothing is uploaded
	scripts/release/release

release-small: ## as release, only archive, npm, bundle and image of Linux on this machine's processor
	scripts/release/release -small

release-twice: ## the release in two directories, which must be equal byte for byte; scripts/release/twice -small for a part
	scripts/release/twice

channels: release ## the release, and every channel of it started in a root that holds nothing else
	CHANNELS_DIST=dist CGO_ENABLED=0 go test -count=1 -timeout 60m -v ./conformance/channels

documents: ## 60 documents made by LibreOffice and libraries of Python, beside what went into them; PYTHON has python-docx, openpyxl, python-pptx and reportlab
	SAFETY=full CGO_ENABLED=0 go test -count=1 -v ./conformance/documents

models: ## small models and their servers, installed in .models, and all that goes through an endpoint tried with them
	scripts/models

docs: ## README, docs and what stands beside them as pages to be read offline, into dist/site; every link is checked
	rm -rf dist/site && CGO_ENABLED=0 go run ./scripts/site . dist/site && echo dist/site
