# Two commands matter: `make demo` (needs Rust only) and `make test` (sets up everything that it needs).
# Long measurements live in `make bench` and `make calibrate`, never in `make test`.

CARGO ?= cargo
UNLADEN := target/release/unladen

.PHONY: help demo test build fmt lint check-fmt rust-test calibrate aa bench-load bench-sink deps clean

help:            ## List the targets.
	@grep -hE '^[a-z-]+: .*##|^[a-z-]+:  *##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 14

build:           ## Build the executable.
	$(CARGO) build --release --locked -p unladen

demo: build      ## Weigh the embedded service bare and under OpenTelemetry: about 2 minutes.
	$(UNLADEN) demo

test: deps check-fmt lint rust-test   ## Everything that CI runs.
	@echo "make test: all green"

check-fmt:
	$(CARGO) fmt --all --check

lint:            ## Clippy with warnings denied.
	$(CARGO) clippy --release --locked --workspace --all-targets -- -D warnings

rust-test:       ## Unit, property, golden and end-to-end tests.
	$(CARGO) test --release --locked --workspace

bench-sink:      ## Compare the span sink with its peers (Go builds the Collector once): about 5 minutes, into bench/README.md.
	$(CARGO) build --profile dist --locked -p unladen-sink --examples
	bench/sink/run.py

calibrate:       ## Simulate the statistics: false alarms and coverage against their nominal values.
	$(CARGO) test --release --locked -p unladen-stats --test calibration -- --ignored --nocapture

BENCH_LOAD_CASES ?= closed-8 closed-64 closed-256 open-10000:30 open-30000:30 frozen-8:12 frozen-64:12 http2-8 nghttpd-8
BENCH_LOAD_ROUNDS ?= 5
BENCH_LOAD_PEER_ROUNDS ?= 3
BENCH_LOAD_SECONDS ?= 3
# The load generator as a process of its own; target/dist/unladen works too.
BENCH_LOAD_OURS ?= target/dist/examples/generator
bench-load:      ## Compare the load generator with its peers; writes bench/README.md (about 50 minutes).
	bench/load/peers.sh target/peers
	$(CARGO) build --profile dist --locked -p unladen-load --examples
	mkdir -p target/bench-load
	target/dist/examples/bench_load $(BENCH_LOAD_CASES) --rounds $(BENCH_LOAD_ROUNDS) --peer-rounds $(BENCH_LOAD_PEER_ROUNDS) --seconds $(BENCH_LOAD_SECONDS) \
	  $(if $(ONLY),--only $(ONLY)) --ours $(BENCH_LOAD_OURS) --peers target/peers --stub target/dist/examples/stub_server \
	  --runs target/bench-load/runs.jsonl --table bench/README.md

aa:              ## Measure identical variants for seven minutes; count the false alarms of 2,000 re-labelled studies.
	$(CARGO) test --release --locked -p unladen --test e2e -- --ignored --nocapture identical

fmt:             ## Format the sources.
	$(CARGO) fmt --all

# Debian packages that the end-to-end tests use; installed only if they are missing.
DEBIAN := nginx-light python3-venv
# Reads the span files in a test, from PyPI.
DUCKDB := 1.4.2
deps:
	@missing=""; for package in $(DEBIAN); do \
	  dpkg-query -W -f='$${Status}' $$package 2>/dev/null | grep -q 'ok installed' || missing="$$missing $$package"; done; \
	if [ -n "$$missing" ]; then echo "installing:$$missing"; \
	  export DEBIAN_FRONTEND=noninteractive; apt-get update -qq && apt-get install -y -qq --no-install-recommends $$missing >/dev/null; fi
	@test -e target/python/.duckdb-$(DUCKDB) || { echo "installing: duckdb $(DUCKDB) for Python in target/python"; \
	  python3 -m venv target/python && target/python/bin/pip install -q duckdb==$(DUCKDB) && touch target/python/.duckdb-$(DUCKDB); }

clean:           ## Remove build output and run folders.
	$(CARGO) clean
	rm -rf runs
