# Three commands matter: `make demo` (needs Rust only), `make check` (while you work) and `make test` (sets up everything that it needs).
# Long measurements live in `make bench` and `make calibrate`, never in `make test`.

CARGO ?= cargo
UNLADEN := $(or $(CARGO_TARGET_DIR),target)/release/unladen

.PHONY: help demo check test test-action test-dist dist image build fmt lint check-fmt rust-test calibrate aa bench-load bench-counts bench-sink bench-alternatives bench-precision bench-relay power demos crash loss fuzz deps debian clean decisions docs \
  studies-deps studies tables check-tables mongodb go-subjects agents shop governed tickets tickets-crash cluster cluster-stop cluster-test

help:            ## List the targets.
	@grep -hE '^[a-z-]+: .*##|^[a-z-]+:  *##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 14

build:           ## Build the executable.
	$(CARGO) build --release --locked -p unladen

# What the demo does not need is most of what an executable takes to build: it is left out, and what comes out goes to a place of its own, as
# everything else expects a whole one at $(UNLADEN). Where a whole one has been built, that is brought up to date and used.
DEMO := target/demo/unladen
demo:            ## Measure the built-in service with and without OpenTelemetry: 2 to 3 minutes.
	@if [ -e $(UNLADEN) ]; then $(MAKE) --no-print-directory build && exec $(UNLADEN) demo; \
	else $(CARGO) build --release --locked -p unladen --no-default-features && mkdir -p $(dir $(DEMO)) && mv $(UNLADEN) $(DEMO) && exec $(DEMO) demo; fi

check: check-fmt ## Format, clippy, unit tests: while you work. No network.
	$(CARGO) clippy --release --locked --offline --workspace --all-targets -- -D warnings
	$(CARGO) test --release --locked --offline --workspace --lib --bins --quiet

# clippy-driver is rustc with lints: what the tests run is compiled by it, once, instead of checked first and compiled then. What
# `cargo clippy -- -D warnings` hands to it is in its environment.
LINTED := RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-Dwarnings

# To get things waits for the network most of the time, to compile for the processor: one beside the other.
test: check-fmt  ## Everything that CI runs.
	@$(MAKE) --no-print-directory deps & deps=$$!; $(LINTED) $(MAKE) --no-print-directory build-tests; built=$$?; wait $$deps && exit $$built
	@BUILT= $(LINTED) $(MAKE) --no-print-directory check-tables rust-test test-action test-dist
	@echo "make test: all green"

.PHONY: build-tests
# Examples are what the benches run: they must compile. So must what `make demo` builds, where crates have the features that they ask for
# and not those of the whole workspace.
build-tests:
	$(CARGO) test --release --locked --workspace --lib --bins --tests --examples --no-run
	$(CARGO) check --release --locked -p unladen --no-default-features

check-fmt:
	$(CARGO) fmt --all --check

tables:          ## Write the measured numbers into the READMEs of the studies, from the findings that are committed.
	studies/tables/write.py

check-tables:    ## That no README of a study says anything but its findings, and that what writes them works.
	python3 -m unittest discover --quiet --start-directory studies/tables
	studies/tables/write.py --check

lint:            ## Clippy with warnings denied, also of the build that `make demo` makes, and rustdoc.
	$(CARGO) clippy --release --locked --workspace --all-targets -- -D warnings
	$(CARGO) clippy --release --locked -p unladen --no-default-features -- -D warnings
	RUSTDOCFLAGS=-Dwarnings $(CARGO) doc --release --locked --workspace --no-deps

rust-test:       ## Unit, property, golden and end-to-end tests.
	@CARGO=$(CARGO) scripts/rust-test.sh
	$(CARGO) test --release --locked --workspace --doc --quiet

# `make test` has built the executable with the features of all crates; for itself it would be compiled once more. It says so in the
# environment, not as a variable of the command line: make exports those as `MAKEOVERRIDES=${…}`, which some services cannot read.
BUILT ?= build
test-action: $(BUILT) ## Run the steps of action.yml against a stand-in for GitHub.
	.github/action/test.py $(UNLADEN)

test-dist: $(BUILT) | debian ## Package a stand-in and install it in every way.
	scripts/dist/test.sh $(UNLADEN)

# `make dist DIST=x86_64` makes those of one architecture.
DIST ?= x86_64 aarch64
dist:            ## Make what a release has: static executables, packages for Debian, PyPI and npm, checksums, SBOM, into target/packages.
	scripts/dist/build.sh $(DIST)
	scripts/dist/package.py --out target/packages $(foreach arch,$(DIST),$(arch)=target/$(arch)-unknown-linux-musl/dist/unladen)

image:           ## Make the container image unladen:VERSION of the static executable, with Docker.
	scripts/dist/build.sh $(shell uname -m)
	scripts/dist/image.sh

crash:           ## Kill the span sink 300 times under load, over all protocols: about three minutes.
	$(CARGO) test --release --locked -p unladen-sink --test sink -- --ignored --nocapture survives_kill_9_at_many_moments

loss:            ## Send the span sink five million spans by each protocol, with a slow store: about half an hour.
	$(CARGO) test --release --locked -p unladen-sink --test sink -- --ignored --nocapture nothing_is_lost_of_five_million

FUZZ_SECONDS ?= 600
fuzz:            ## Fuzz what the span sink and the load generator read, FUZZ_SECONDS each; needs cargo-fuzz from crates.io.
	for seeds in crates/*/fuzz/seeds/*; do (target=$${seeds##*/}; cd $${seeds%/fuzz/*} && mkdir -p fuzz/corpus/$$target && \
	  RUSTC_BOOTSTRAP=1 $(CARGO) fuzz run -s none $$target fuzz/corpus/$$target fuzz/seeds/$$target -- \
	  -max_total_time=$(FUZZ_SECONDS) -max_len=8192 -timeout=20) || exit 1; done

# `--missing --seconds 200` goes on with what is not there yet, and begins nothing after so long.
BENCH_SINK ?=
bench-sink:      ## Compare the span sink with its peers (Go builds the Collector and Jaeger once): about 8 minutes, into bench/README.md.
	$(CARGO) build --profile dist --locked -p unladen-sink --examples
	bench/sink/run.py $(BENCH_SINK)

bench-alternatives: ## Compare the parts of the sink that are its own with what libraries have: about ten minutes with the build, into bench/README.md.
	$(CARGO) build --profile dist --locked -p unladen-sink --examples
	bench/alternatives/run.py

calibrate:       ## Simulate the statistics: false alarms and coverage against their nominal values.
	$(CARGO) test --release --locked -p unladen-stats --test calibration -- --ignored --nocapture
	$(CARGO) test --release --locked -p unladen --test report the_gate -- --nocapture

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

BENCH_COUNTS_REQUESTS ?= 1000000
bench-counts:    ## Hold the load generator's counts against nginx, Go, Jetty and Node (a million requests each, about 10 minutes).
	$(CARGO) build --release --locked -p unladen-load --example generator
	bench/load/counts.py --generator target/release/examples/generator --work target/counts --requests $(BENCH_COUNTS_REQUESTS) --table bench/README.md

# Goes on where it was broken off; `BENCH_PRECISION="--only c,go --rounds 20"`, `--seconds 600` begins nothing after so long, `--fresh` begins anew.
BENCH_PRECISION ?=
bench-precision: build | debian ## Weigh services in seven languages and frameworks by separate and by alternating rounds: about two hours, into bench/README.md.
	bench/precision/run.py $(BENCH_PRECISION)

bench-relay: build   ## Weigh a service in a network of its own, through the relay, beside one on the machine's: about half an hour, into bench/README.md.
	bench/relay/run.py

aa:              ## Measure identical variants for nine minutes, by either design; count the false alarms of 2,000 re-labelled studies: into docs/explanation/soundness.md.
	bench/verdicts.py aa

power:           ## Count how many of ten studies find 1 % more work, and 5 % beside a process that uses half a core: about an hour, into docs/explanation/soundness.md.
	bench/verdicts.py power

demos: build     ## Run the demo ten times in a row: 18 minutes, into docs/explanation/soundness.md.
	bench/verdicts.py demos

decisions:       ## Find a leak of 1 MiB a minute, and the cost per span over five doses: about 7 minutes.
	$(CARGO) test --release --locked --workspace --test e2e -- --ignored --nocapture decisions

fmt:             ## Format the sources.
	$(CARGO) fmt --all

# Debian packages that the end-to-end tests use; installed only if they are missing. Node.js and Maven may be there from
# elsewhere, and two of one kind get in each other's way, so for them the command counts. Go must be there already.
DEBIAN := chromium docker.io docker-compose podman netavark aardvark-dns nginx-light prometheus python3-venv mariadb-server postgresql redis-server unzip $(if $(shell command -v npm),,nodejs npm) $(if $(shell command -v mvn),,maven) \
  $(if $(shell command -v javac),,default-jdk-headless)
# Reads the span files in a test, from PyPI.
DUCKDB := 1.4.2
SENDERS := target/senders
# Grafana's own types, from npm: a test holds the dashboard against them.
GRAFANA := target/grafana

# What the studies need: backends, and services under test.
STUDIES := target/studies
SUBJECTS := target/subjects
SHOP := target/shop
GOVERNED := target/governed
TICKETS := target/tickets
AGENTS := target/agents

deps: $(SENDERS)/go/.ready $(SENDERS)/java/.ready $(SENDERS)/python/.ready $(SENDERS)/js/.ready $(GRAFANA)/.ready $(SUBJECTS)/.ready $(SHOP)/.made $(GOVERNED)/.made $(TICKETS)/.made | debian
	@test -e target/python/.duckdb-$(DUCKDB) || { echo "installing: duckdb $(DUCKDB) for Python in target/python"; \
	  python3 -m venv target/python && target/python/bin/pip install -q duckdb==$(DUCKDB) && touch target/python/.duckdb-$(DUCKDB); }

define install
	@missing=""; for package in $(1); do \
	  dpkg-query -W -f='$${Status}' $$package 2>/dev/null | grep -q 'ok installed' || missing="$$missing $$package"; done; \
	if [ -n "$$missing" ]; then echo "installing:$$missing"; \
	  export DEBIAN_FRONTEND=noninteractive; apt-get update -qq && apt-get install -y -qq --no-install-recommends $$missing >/dev/null; fi
endef
debian:
	$(call install,$(DEBIAN))

# What sends spans to the sink in tests: SDKs and agents as their projects publish them, pinned in subjects/senders.
$(SENDERS)/go/.ready: $(wildcard subjects/senders/go/*) | debian
	@command -v go >/dev/null || { echo "go is missing: install Go 1.21 or newer, which fetches the version that it needs"; exit 1; }
	@echo "building: senders in Go"; mkdir -p $(@D)
	@cd subjects/senders/go && go build -trimpath -buildvcs=false -o $(CURDIR)/$(@D)/ . $$(go list tool)
	@touch $@

$(SENDERS)/java/.ready: $(shell find subjects/senders/java -type f) | debian
	@echo "building: senders in Java, and their agents"; rm -rf $(@D)
	@scripts/mvn.sh -f subjects/senders/java package
	@mv $(@D)/pinpoint-agent-* $(@D)/pinpoint
	@touch $@

$(SENDERS)/python/.ready: subjects/senders/python/requirements.txt | debian
	@echo "installing: senders in Python"
	@python3 -m venv --clear $(@D) && $(@D)/bin/pip install -q --disable-pip-version-check --require-hashes -r $<
	@touch $@

$(SENDERS)/js/.ready: $(wildcard subjects/senders/js/*) | debian
	@echo "installing: senders in JavaScript"; mkdir -p $(@D) && cp $^ $(@D)
	@cd $(@D) && npm ci --silent --no-fund --no-audit --ignore-scripts
	@touch $@

$(GRAFANA)/.ready: $(wildcard crates/unladen/tests/grafana/*) | debian
	@echo "installing: Grafana's types"; mkdir -p $(@D) && cp $^ $(@D)
	@cd $(@D) && npm ci --silent --no-fund --no-audit --ignore-scripts
	@touch $@

studies-deps: deps  ## Get the real backends of the studies, pinned, into target/studies: about 10 minutes, 500 MB; goes on where it was interrupted.
	studies/parts/fetch.sh $(STUDIES)

studies: build studies-deps agents shop governed tickets ## Run the studies in their default profiles: most of a day (estimated) of a machine that does nothing else.
	$(UNLADEN) run studies/skywalking-go
	$(UNLADEN) run studies/tracing-benchmark
	$(UNLADEN) run studies/easeagent
	for study in router removal tag-transmission tag-queues consume-prohibition write-prohibition; do $(UNLADEN) run studies/sermant-$$study || exit 1; done
	$(UNLADEN) run studies/ticket-master
	$(UNLADEN) run studies/agents-python
	$(UNLADEN) run studies/agents-node
	$(UNLADEN) run studies/agents-go
	$(UNLADEN) run studies/agents-java

mongodb: | debian ## Build FerretDB, which speaks MongoDB's protocol, for studies/sermant-write-prohibition: 3 minutes once.
	studies/parts/fetch.sh $(STUDIES) ferretdb

go-subjects: $(SUBJECTS)/.ready ## Test and build the services under test that are written in Go; SkyWalking's agent is woven in, which takes some minutes once.

# The agent's weaver sees every package that is compiled, so the first build compiles all of them anew; it keeps them. What is tested is
# compiled with the flags of what is built, or Go would compile all of it twice.
$(SUBJECTS)/.ready: $(shell find subjects/go subjects/skywalking-go subjects/agents/go -type f) | debian
	@command -v go >/dev/null || { echo "go is missing: install Go 1.21 or newer, which fetches the version that it needs"; exit 1; }
	@echo "testing and building: subjects in Go"
	@cd subjects/go && go test -trimpath -vet=all ./...
	@subjects/agents/go/build.sh test
	@cd subjects/go && go build -trimpath -buildvcs=false -o $(CURDIR)/$(SUBJECTS)/ ./cmd/...
	@echo "building: subjects with SkyWalking's agent woven in"
	@subjects/skywalking-go/build.sh subjects/go $(SUBJECTS) ./cmd/ping ./cmd/consumer
	@touch $@

agents: $(AGENTS)/python/.ready $(AGENTS)/node/.ready $(AGENTS)/go/.ready $(AGENTS)/java/.ready ## Get the services and the agents for Python, Node.js, Go and Java that studies/agents-* weigh, from PyPI, npm, the Go proxy and Maven Central: some minutes, 1 GB.

# An environment for each agent: some look for packages of others, and load them. How the pins are made: subjects/agents/README.md.
$(AGENTS)/python/.ready: $(wildcard subjects/agents/python/*.txt) | debian
	@for agent in bare $(filter-out service,$(basename $(notdir $^))); do echo "installing: a service in Python, $$agent"; \
	  pins="-r subjects/agents/python/service.txt"; test $$agent = bare || pins="$$pins -r subjects/agents/python/$$agent.txt"; \
	  python3 -m venv --clear $(@D)/$$agent && $(@D)/$$agent/bin/pip install -q --disable-pip-version-check --require-hashes $$pins || exit 1; done
	@touch $@

$(AGENTS)/node/.ready: $(wildcard subjects/agents/node/*) | debian
	@echo "installing: a service in JavaScript, the agents for Node.js, and Node.js"; mkdir -p $(@D) && cp $^ $(@D)
	@cd $(@D) && npm ci --silent --no-fund --no-audit --ignore-scripts && ln -sf node_modules/node-linux-*/bin/node node
	@touch $@

# The agent over eBPF has programs for the kernel, which clang compiles.
$(AGENTS)/go/.ready: $(shell find subjects/agents/go -type f) | debian
	@command -v go >/dev/null || { echo "go is missing: install Go 1.21 or newer, which fetches the version that it needs"; exit 1; }
	$(call install,clang llvm)
	@echo "building: a service in Go, bare and with each agent, and the agent over eBPF"
	@subjects/agents/go/build.sh $(@D)
	@subjects/agents/go/ebpf.sh $(@D)
	@touch $@

# The plugins of SkyWalking's agent are the shop's: Maven Central has the agent without any.
$(AGENTS)/java/.ready: $(shell find subjects/agents/java -type f) $(SHOP)/.made | debian
	@echo "building: a service in Java; getting: the agents for Java"; rm -rf $(@D)
	@scripts/mvn.sh -f subjects/agents/java package
	@mv $(@D)/agents/pinpoint-agent-* $(@D)/agents/pinpoint
	@cp -r $(SHOP)/skywalking $(@D)/agents/
	@touch $@

shop: $(SHOP)/.made ## Test and build the Spring shop and get the agents of the JVM from Maven Central: a minute or two.

$(SHOP)/.made: $(shell find subjects/shop -type f) | debian
	@echo "testing and building: the shop"
	@subjects/shop/build.sh verify
	@touch $@

governed: $(GOVERNED)/.made ## Test and build the governed applications and their governor, from Maven Central: two minutes.

$(GOVERNED)/.made: $(shell find subjects/governed subjects/governor -type f) | debian
	@echo "testing and building: the governed applications"
	@subjects/governed/build.sh verify
	@touch $@

tickets: $(TICKETS)/.made ## Test and build the ticket shop, its Kafka broker and its agent, from Maven Central: a minute or two.

$(TICKETS)/.made: $(shell find subjects/tickets -type f) | debian
	@echo "testing and building: the ticket shop"
	@subjects/tickets/build.sh verify
	@touch $@

tickets-crash: $(TICKETS)/.made ## Kill the ticket shop's broker ten times in the midst of a burst, and check its books: some minutes.
	$(CARGO) test --release --locked -p unladen --test e2e -- --ignored --nocapture broker_is_killed

# Of these two `debian` installs what they need, not what the studies do.
cluster cluster-test: DEBIAN := gcc iproute2 libc6-dev libseccomp-dev openssl pkg-config

cluster: | debian ## Start a Kubernetes cluster of one node on this machine, as root; Go builds it once, which takes minutes.
	scripts/cluster/cluster.py start

cluster-stop:    ## End the cluster and remove all of it but the build in target/cluster.
	scripts/cluster/cluster.py stop

cluster-test: | debian ## Start the cluster, use all that a measurement needs of it, run studies on it, end it, and look for what is left.
	scripts/cluster/test.py
	scripts/cluster/end_to_end.sh

docs:            ## Build the documentation as a book into target/book (cargo installs mdBook in target/tools once).
	@test -x target/tools/bin/mdbook || $(CARGO) install mdbook --locked --no-default-features --features search --root target/tools
	target/tools/bin/mdbook build docs

clean:           ## Remove build output and run folders.
	$(CARGO) clean
	rm -rf runs
