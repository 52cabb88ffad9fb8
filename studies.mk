# The studies: what they need, and running them. Included by the Makefile.

STUDIES := target/studies
SUBJECTS := target/subjects
SHOP := target/shop
GOVERNED := target/governed
TICKETS := target/tickets

.PHONY: studies-deps studies mongodb go-subjects shop governed tickets tickets-crash

studies-deps: deps  ## Get the real backends of the studies, pinned, into target/studies: about 10 minutes, 500 MB; goes on where it was interrupted.
	studies/parts/fetch.sh $(STUDIES)

studies: build studies-deps shop governed tickets ## Run the studies in their default profiles: most of a day (estimated) of a machine that does nothing else.
	$(UNLADEN) run studies/skywalking-go
	$(UNLADEN) run studies/tracing-benchmark
	$(UNLADEN) run studies/easeagent
	for study in router removal tag-transmission tag-queues consume-prohibition write-prohibition; do $(UNLADEN) run studies/sermant-$$study || exit 1; done
	$(UNLADEN) run studies/ticket-master

mongodb: | debian ## Build FerretDB, which speaks MongoDB's protocol, for studies/sermant-write-prohibition: 3 minutes once.
	studies/parts/fetch.sh $(STUDIES) ferretdb

go-subjects: $(SUBJECTS)/.ready ## Test and build the services under test that are written in Go; SkyWalking's agent is woven in, which takes some minutes once.

# The agent's weaver sees every package that is compiled, so the first build compiles all of them anew; it keeps them.
$(SUBJECTS)/.ready: $(shell find subjects/go subjects/skywalking-go -type f) | debian
	@command -v go >/dev/null || { echo "go is missing: install Go 1.21 or newer, which fetches the version that it needs"; exit 1; }
	@echo "testing and building: subjects in Go"
	@cd subjects/go && go vet ./... && go test ./...
	@cd subjects/go && go build -trimpath -buildvcs=false -o $(CURDIR)/$(SUBJECTS)/ ./cmd/...
	@echo "building: subjects with SkyWalking's agent woven in"
	@subjects/skywalking-go/build.sh subjects/go $(SUBJECTS) ./cmd/ping ./cmd/consumer
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
