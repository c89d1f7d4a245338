.DEFAULT_GOAL := help
.PHONY: help run run-clean test tools unit fmt fmt-check clippy deny docs golden shell e2e e2e-parts e2e-up e2e-down bench-core bench-service mutants

# A step notes that it has passed, for .ci/run to see that none was left out.
passed = @[ -z "$$SUITES_RAN" ] || echo $@ >> "$$SUITES_RAN"

##@ Every day

help: ## show this help
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@ / { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z0-9-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## start the product with the demo fleet: http://127.0.0.1:8080 to manage it, :8081 for clusters to poll
	@scripts/run

run-clean: ## forget the demo: its database and its tokens
	@scripts/run --clean

test: tools fmt-check shell clippy unit deny docs ## everything that has to pass before a commit

# The loop is no part of `test`: it needs the parts, and has a target of its own.
unit: ## run the tests of all crates but e2e
	cargo test --workspace --exclude e2e --locked
	$(passed)

fmt: ## format the code
	cargo fmt --all

golden: ## write the golden answers again; look at what changed
	UPDATE_GOLDEN=1 cargo test -p fleet --test it golden --locked
	@echo "Now look at 'git diff crates/fleet/tests': each changed byte is reconciled on every cluster."

##@ Checks, each a part of test

fmt-check: ## check the format
	cargo fmt --all --check
	$(passed)

clippy: ## lint, warnings are errors (of e2e: a part of e2e)
	cargo clippy --workspace --exclude e2e --all-targets --locked -- -D warnings
	$(passed)

shell: ## check the scripts
	scripts/tool shellcheck .ci/run scripts/* e2e/parts/build
	$(passed)

deny: ## check licenses, sources and banned dependencies
	scripts/tool cargo-deny --locked check bans licenses sources
	$(passed)

docs: ## build the book (docs/book) and the API documentation (target/doc)
	scripts/tool mdbook build docs
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --workspace --exclude e2e --locked
	$(passed)

tools: ## install what test needs, in a cache outside the clone
	@scripts/install-tools clippy rustfmt cargo-deny mdbook strace shellcheck > /dev/null

##@ The real loop: Kubernetes, the Flux Operator, our service (the first time builds them, about 25 minutes)

e2e: e2e-parts ## follow every promise through the real loop (STORIES=changes for a part)
	cargo clippy -p e2e --all-targets --locked -- -D warnings
	cargo build -p server --locked
	cargo test -p e2e --locked -- $(STORIES)
	$(passed)

e2e-parts: ## build Kubernetes, the Flux Operator and Flux's controllers, once, in a cache outside the clone
	@e2e/parts/build > /dev/null
	@scripts/install-tools promtool > /dev/null

e2e-up: e2e-parts ## leave the loop running to play with, and say how
	cargo build -p server -p e2e --locked
	@$${CARGO_TARGET_DIR:-target}/debug/e2e up

e2e-down: ## end what e2e-up started
	@$${CARGO_TARGET_DIR:-target}/debug/e2e down

##@ Now and then

bench-core: ## measure the core: time, then memory per cluster (BENCH_CLUSTERS=1000 for one size)
	cargo bench -p bench --bench core --locked
	cargo run --release -p bench --example memory --locked

bench-service: ## measure the service: CPU per poll, writes a second, start and memory (BENCH_CLUSTERS=10000 for one size)
	cargo build --release -p server --locked
	cargo run --release -p bench --example service --locked

mutants: ## look for code that can be changed without a test noticing (an hour; MUTANTS="-f '*guard.rs'" for a part)
	PROPTEST_CASES=32 scripts/tool cargo-mutants mutants $(MUTANTS)
