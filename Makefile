.DEFAULT_GOAL := help
.PHONY: help run run-clean install generated test tools unit fmt fmt-check clippy deny docs golden shell demo cli-demo demo-clean e2e e2e-parts bench bench-core bench-work bench-starvation mutants

# A step notes that it has passed, for .ci/run to see that none was left out.
passed = @[ -z "$$SUITES_RAN" ] || echo $@ >> "$$SUITES_RAN"

##@ Every day

help: ## show this help
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@ / { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z0-9-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## start the product with the demo fleet: http://127.0.0.1:8080 to manage it, :8081 for clusters to poll
	@scripts/run

run-clean: ## forget what run keeps: the database, the tokens, the context
	@scripts/run --clean

install: ## install the command line, as flux-resourceset-cli and frs, where cargo installs things
	cargo install --locked --path crates/cli

test: tools fmt-check shell clippy unit deny docs ## everything that has to pass before a commit

# Always the whole workspace: another selection of packages has other features of what they depend on, and all of that is compiled again.
# The loop is no part of `test`: it needs the parts, and has a target of its own.
unit: ## run the tests of all crates
	PROGRAMS_ARE_BUILT=1 cargo test --workspace --locked
	$(passed)

fmt: ## format the code
	cargo fmt --all

generated: ## write what is made from the code: the book's chapter about the command line
	UPDATE_GENERATED=1 cargo test -p cli --lib --locked reference

golden: ## write the golden answers again; look at what changed
	UPDATE_GOLDEN=1 cargo test -p fleet --test it golden --locked
	@echo "Now look at 'git diff crates/fleet/tests': each changed byte is reconciled on every cluster."

##@ Checks, each a part of test

fmt-check: ## check the format
	cargo fmt --all --check
	$(passed)

clippy: ## lint, warnings are errors
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo clippy --workspace --test stories --locked -- -D warnings
	$(passed)

shell: ## check the scripts
	scripts/tool shellcheck .ci/run scripts/* e2e/parts/build deploy/healthcheck
	$(passed)

deny: ## check licenses, sources and banned dependencies
	scripts/tool cargo-deny --locked check bans licenses sources
	$(passed)

docs: ## build the book (docs/book), check its links, and the API documentation (target/doc)
	scripts/tool mdbook build docs
	cargo test --workspace --test links --locked
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --workspace --exclude e2e --locked
	$(passed)

tools: ## install what test needs, in a cache outside the clone
	@scripts/install-tools clippy rustfmt cargo-deny mdbook strace shellcheck curl zsh fish > /dev/null

##@ The demo: a cluster that follows the service

demo: ## start it, in kind or (built once in 25 minutes) as plain processes, and say how to use it (DEMO=kind or local)
	@scripts/demo

cli-demo: ## show on it, with the command line, what the product does (PAUSE=0 without waiting for Enter)
	@scripts/cli-demo

demo-clean: ## end it, and remove all of it
	@scripts/demo clean

##@ The real loop: Kubernetes, the Flux Operator, our service (the first time builds them, about 25 minutes)

e2e: e2e-parts ## follow every promise through the real loop (STORIES=changes for a part)
	cargo test --workspace --no-run --locked
	cargo test --workspace --test stories --locked -- $(STORIES)
	$(passed)

e2e-parts: ## build Kubernetes, the Flux Operator and Flux's controllers, once, in a cache outside the clone
	@e2e/parts/build > /dev/null
	@scripts/install-tools promtool > /dev/null

##@ Now and then

bench-core: ## measure the core and the compression: time, then memory per cluster (BENCH_CLUSTERS=1000 for one size)
	cargo bench -p bench --locked
	cargo run --release -p bench --example memory --locked
	cargo run --release -p bench --example plan --locked

bench: ## measure the service beside bare hyper and nginx, and write the figures into the book (BENCH_CLUSTERS=10000 for one size, and no book)
	cargo build --release --workspace --locked
	$${CARGO_TARGET_DIR:-target}/release/bench-service

bench-work: ## measure the largest transactions that are accepted: how long nobody else's change is decided
	cargo run --release -p bench --example work --locked

bench-starvation: ## measure polls beside 64 planners, 32 historians and the largest writes (BENCH_CLUSTERS=10000, BENCH_ROUNDS=7)
	cargo build --release -p server --locked
	cargo run --release -p bench --example starvation --locked

mutants: ## look for code that can be changed without a test noticing (an hour; MUTANTS="-f '*guard.rs'" for a part)
	PROPTEST_CASES=32 scripts/tool cargo-mutants mutants $(MUTANTS)
