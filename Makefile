# nearcrawl: build, test, try and install. `make` lists what there is.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PREFIX ?= /usr
DESTDIR ?=
DEMO_ARGS ?=
TEST_ARGS ?=
SCENARIOS ?=
SWEEP ?=
CROWD ?= 100000,1000
STRANGER ?=
bindir := $(PREFIX)/bin
mandir := $(PREFIX)/share/man/man1
man5dir := $(PREFIX)/share/man/man5
unitdir := $(PREFIX)/lib/systemd/system
units := nearcrawl.service nearcrawl-hierarchy.service nearcrawl-hierarchy.timer
# The binary to install; `make install BINARY=path` takes one that was built elsewhere.
BINARY ?=

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile
	@echo
	@echo "  Only installing missing Debian packages needs root (scripts/setup.sh prints the line to run)."
	@echo "  RocksDB and everything that is built live in ~/.cache/nearcrawl (NEARCRAWL_CACHE), outside the tree."

# `make quick`, `demo`, `test` and `check` share cargo's profile dev, which is set up to build quickly; `make build` is what is installed.
.PHONY: ready
ready:
	@scripts/setup.sh
	@scripts/build-rocksdb.sh

.PHONY: demo
demo: ## five daemons crawl a web of their own on this machine, and a table (DEMO_ARGS=--keep: they go on)
	@scripts/demo.sh $(DEMO_ARGS)

.PHONY: quick
quick: ## the daemon, little optimised: 6 minutes for the first time, a minute after a change
	@scripts/setup.sh
	@scripts/build.sh dev

.PHONY: release
release: ## the daemon, optimised: 10 minutes for the first time, 3 after a change
	@scripts/setup.sh
	@scripts/build.sh release

.PHONY: build
build: ## the daemon to install, small and optimised as a whole: 10 minutes for the first time, 4 after a change
	@scripts/setup.sh
	@scripts/build.sh dist

.PHONY: check
check: ## for daily use, 2 minutes: formatting, clippy, and the tests of what is pure
	@scripts/setup.sh
	@. scripts/env.sh; set -x; \
	cargo fmt --all --check; \
	cargo clippy --workspace --locked --all-targets -- -D warnings; \
	cargo test --locked --quiet $(addprefix --package nearcrawl-,model hierarchy page core)

.PHONY: test
test: ready ## every test; downloads real pages to crawl, once (TEST_ARGS goes to the test runner)
	@scripts/corpus.sh >/dev/null
	@scripts/test.sh $(TEST_ARGS)

.PHONY: scenarios
scenarios: ## every shipped scenario in the simulated swarm, three seeds each, and a table (SCENARIOS="--seeds 1..11 a6")
	@. scripts/env.sh; cargo run --quiet --release --locked --package nearcrawl-lab --example scenarios -- $(SCENARIOS)

# Both append a row to docs/SWEEPS.md, with the commit that was played.
label = "$$(date -I), $$(git describe --always --dirty)"

.PHONY: crowd
crowd: ## one address with 100,000 hosts beside 1,000 servers in the simulated swarm, and without (CROWD=100000,1000)
	@. scripts/env.sh; NEARCRAWL_CROWD=$(CROWD) cargo test --quiet --release --locked --package nearcrawl-lab --lib -- --nocapture swarm::tests::crowd

.PHONY: sweep
sweep: ## 200 random courses of twelve simulated members, an hour each, and a row in docs/SWEEPS.md (SWEEP="--seeds 1..41 --minutes 30")
	@. scripts/env.sh; cargo run --quiet --release --locked --package nearcrawl-lab --example sweep -- \
		--seeds 1..201 --minutes 60 --log docs/SWEEPS.md --label $(label) $(SWEEP)

.PHONY: chaos
chaos: ## 5,000 of them; goes on where it was interrupted, as long as the commit is the same (SWEEP="--seeds 1..5001")
	@. scripts/env.sh; mkdir -p "$$NEARCRAWL_CACHE"; cargo run --quiet --release --locked --package nearcrawl-lab --example sweep -- \
		--seeds 1..5001 --minutes 60 --resume "$$NEARCRAWL_CACHE/chaos-$$(git describe --always --dirty).jsonl" \
		--log docs/SWEEPS.md --label $(label) $(SWEEP)

# Small data is in data/studies; what is missing there is named on the page. FIGURES=--quick: small worlds, within some minutes.
.PHONY: figures
figures: release ## every figure of the papers and ours on one page, docs/figures.html (FIGURES="--quick --servers servers.jsonl")
	@. scripts/env.sh; "$$CARGO_TARGET_DIR/release/nearcrawl" lab figures --data data/studies --out docs/figures.html $(FIGURES)

# CI has 50 kills and 200 flips, in `make test`.
.PHONY: kills
kills: ready ## five real daemons, 1,000 kill -9 (NEARCRAWL_KILLS, NEARCRAWL_SEED): half an hour
	@. scripts/env.sh; NEARCRAWL_KILLS=$${NEARCRAWL_KILLS:-1000} cargo test --quiet --locked --package nearcrawl --test suite kills:: -- --nocapture

.PHONY: flips
flips: ready ## 10,000 flipped bits in a daemon's state (NEARCRAWL_FLIPS, NEARCRAWL_SEED): half an hour
	@. scripts/env.sh; NEARCRAWL_FLIPS=$${NEARCRAWL_FLIPS:-10000} cargo test --quiet --locked --package nearcrawl --test suite bit_flips:: -- --nocapture

.PHONY: fuzz
fuzz: ## every decoder and parser, the least fuzzed first, FUZZ_SECONDS (3600) each, FUZZ_BUDGET in all (TARGETS="model/claim page")
	@scripts/setup.sh
	@scripts/fuzz.sh $(TARGETS)

.PHONY: frozen
frozen: ## writes down how values are encoded that are new in crates/model/tests/frozen/values.rs
	@. scripts/env.sh; NEARCRAWL_FREEZE=1 cargo test --quiet --locked --package nearcrawl-model --test frozen what_protocol

.PHONY: lint
lint: ## formatting and clippy
	@scripts/setup.sh
	@. scripts/env.sh; cargo fmt --all --check; cargo clippy --workspace --locked --all-targets -- -D warnings

.PHONY: install
install: ## binary, service, example configuration, man pages, completions (PREFIX=/usr DESTDIR=); build first
	@. scripts/env.sh; binary="$(BINARY)"; binary=$${binary:-$$CARGO_TARGET_DIR/dist/nearcrawl}; \
	[ -x "$$binary" ] || { echo "there is no $$binary: run make build first" >&2; exit 1; }; \
	install -D -m 755 "$$binary" "$(DESTDIR)$(bindir)/nearcrawl"
	@install -d "$(DESTDIR)$(unitdir)"
	@for unit in $(units); do \
	sed 's|@bindir@|$(bindir)|g' "systemd/$$unit" > "$(DESTDIR)$(unitdir)/$$unit"; chmod 644 "$(DESTDIR)$(unitdir)/$$unit"; done
	@config="$(DESTDIR)/etc/nearcrawl/nearcrawl.toml"; \
	if [ -e "$$config" ]; then echo "kept $$config"; else install -D -m 644 nearcrawl.example.toml "$$config"; fi
	@install -D -m 644 nearcrawl.example.toml "$(DESTDIR)/etc/nearcrawl/nearcrawl.example.toml"
	@nearcrawl="$(DESTDIR)$(bindir)/nearcrawl"; \
	install -d "$(DESTDIR)$(mandir)" "$(DESTDIR)$(man5dir)"; "$$nearcrawl" man "$(DESTDIR)$(mandir)" >/dev/null; \
	"$$nearcrawl" man --section 5 "$(DESTDIR)$(man5dir)" >/dev/null
	@nearcrawl="$(DESTDIR)$(bindir)/nearcrawl"; share="$(DESTDIR)$(PREFIX)/share"; \
	install -d "$$share/bash-completion/completions" "$$share/zsh/site-functions" "$$share/fish/vendor_completions.d"; \
	"$$nearcrawl" completions bash > "$$share/bash-completion/completions/nearcrawl"; \
	"$$nearcrawl" completions zsh > "$$share/zsh/site-functions/_nearcrawl"; \
	"$$nearcrawl" completions fish > "$$share/fish/vendor_completions.d/nearcrawl.fish"
	@echo "installed under $(DESTDIR)$(PREFIX)"
	@echo "next: set contact in /etc/nearcrawl/nearcrawl.toml, then systemctl enable --now nearcrawl nearcrawl-hierarchy.timer"

# BINARY and DEB_VERSION may name others; a program of another profile than dist may be too large (DEB_MAX_BINARY, see scripts/deb.sh).
.PHONY: deb
deb: ## a Debian package of what make build has built, in DEB_DIR (default: beside the build)
	@. scripts/env.sh; binary="$(BINARY)"; scripts/deb.sh "$${binary:-$$CARGO_TARGET_DIR/dist/nearcrawl}" "$(or $(DEB_DIR),$$CARGO_TARGET_DIR)"

.PHONY: deb-test
deb-test: ## installs, upgrades, removes and purges the package in a small Debian made for it; needs root and debootstrap
	@. scripts/env.sh; binary="$(BINARY)"; scripts/deb-test.sh "$${binary:-$$CARGO_TARGET_DIR/dist/nearcrawl}"

# DEB_MAX_BINARY=0 for a program of another profile; STRANGER=--json for programs.
.PHONY: stranger
stranger: ## from the package to a member behind a NAT, its work, an opt-out, a budget and the purge, in namespaces; needs root and debootstrap
	@. scripts/env.sh; binary="$(BINARY)"; binary=$${binary:-$$CARGO_TARGET_DIR/dist/nearcrawl}; \
	deb=$$(mktemp -d); trap 'rm -rf "$$deb"' EXIT; tree=$$(scripts/debian-tree.sh); \
	DEB_COMPRESSION=none scripts/deb.sh "$$binary" "$$deb" >/dev/null; "$$binary" lab stranger --package "$$deb"/*.deb --tree "$$tree" $(STRANGER)

.PHONY: uninstall
uninstall: ## what install put there; configuration and state stay
	@rm -f "$(DESTDIR)$(bindir)/nearcrawl" $(addprefix "$(DESTDIR)$(unitdir)"/,$(units)) "$(DESTDIR)/etc/nearcrawl/nearcrawl.example.toml" \
	"$(DESTDIR)$(mandir)"/nearcrawl.1 "$(DESTDIR)$(mandir)"/nearcrawl-*.1 "$(DESTDIR)$(man5dir)/nearcrawl.toml.5" \
	"$(DESTDIR)$(PREFIX)/share/bash-completion/completions/nearcrawl" \
	"$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_nearcrawl" \
	"$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/nearcrawl.fish"
	@echo "left: $(DESTDIR)/etc/nearcrawl and the state in /var/lib/nearcrawl"
