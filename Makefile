# nearcrawl: build, test, try and install. `make` lists what there is.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PREFIX ?= /usr
DESTDIR ?=
DEMO_ARGS ?=
TEST_ARGS ?=
bindir := $(PREFIX)/bin
mandir := $(PREFIX)/share/man/man1
unitdir := $(PREFIX)/lib/systemd/system
# The binary to install; `make install BINARY=path` takes one that was built elsewhere.
BINARY ?=

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile
	@echo
	@echo "  Only installing missing Debian packages needs root (scripts/setup.sh prints the line to run)."
	@echo "  RocksDB and everything that is built live in ~/.cache/nearcrawl (NEARCRAWL_CACHE), outside the tree."

.PHONY: ready
ready:
	@scripts/setup.sh
	@scripts/build-rocksdb.sh

.PHONY: build
build: ready ## the release binary
	@. scripts/env.sh; cargo build --release --locked; echo "built $$CARGO_TARGET_DIR/release/nearcrawl"

.PHONY: demo
demo: build ## five daemons and a small web of their own on this machine, in three minutes (DEMO_ARGS=--keep leaves it running)
	@. scripts/env.sh; exec "$$CARGO_TARGET_DIR/release/nearcrawl" demo $(DEMO_ARGS)

.PHONY: test
test: ready ## every test; downloads real pages to crawl, once (TEST_ARGS goes to the test runner)
	@scripts/corpus.sh >/dev/null
	@. scripts/env.sh; echo "real pages: $$NEARCRAWL_CORPUS"; \
	if cargo nextest --version >/dev/null 2>&1; \
	then exec cargo nextest run --locked --no-fail-fast $(TEST_ARGS); \
	else exec cargo test --locked --no-fail-fast $(TEST_ARGS); fi

.PHONY: lint
lint: ready ## formatting and clippy
	@. scripts/env.sh; cargo fmt --check; cargo clippy --locked --all-targets -- -D warnings

.PHONY: install
install: ## binary, service, example configuration, man pages, completions (PREFIX=/usr DESTDIR=); build first
	@. scripts/env.sh; binary="$(BINARY)"; binary=$${binary:-$$CARGO_TARGET_DIR/release/nearcrawl}; \
	[ -x "$$binary" ] || { echo "there is no $$binary: run make build first" >&2; exit 1; }; \
	install -D -m 755 "$$binary" "$(DESTDIR)$(bindir)/nearcrawl"
	@install -d "$(DESTDIR)$(unitdir)"
	@sed 's|@bindir@|$(bindir)|g' systemd/nearcrawl.service > "$(DESTDIR)$(unitdir)/nearcrawl.service"
	@chmod 644 "$(DESTDIR)$(unitdir)/nearcrawl.service"
	@config="$(DESTDIR)/etc/nearcrawl/nearcrawl.toml"; \
	if [ -e "$$config" ]; then echo "kept $$config"; else install -D -m 644 nearcrawl.example.toml "$$config"; fi
	@nearcrawl="$(DESTDIR)$(bindir)/nearcrawl"; \
	install -d "$(DESTDIR)$(mandir)"; "$$nearcrawl" man "$(DESTDIR)$(mandir)" >/dev/null
	@nearcrawl="$(DESTDIR)$(bindir)/nearcrawl"; share="$(DESTDIR)$(PREFIX)/share"; \
	install -d "$$share/bash-completion/completions" "$$share/zsh/site-functions" "$$share/fish/vendor_completions.d"; \
	"$$nearcrawl" completions bash > "$$share/bash-completion/completions/nearcrawl"; \
	"$$nearcrawl" completions zsh > "$$share/zsh/site-functions/_nearcrawl"; \
	"$$nearcrawl" completions fish > "$$share/fish/vendor_completions.d/nearcrawl.fish"
	@echo "installed under $(DESTDIR)$(PREFIX)"
	@echo "next: set contact in /etc/nearcrawl/nearcrawl.toml, then systemctl enable --now nearcrawl"

.PHONY: uninstall
uninstall: ## what install put there; configuration and state stay
	@rm -f "$(DESTDIR)$(bindir)/nearcrawl" "$(DESTDIR)$(unitdir)/nearcrawl.service" \
	"$(DESTDIR)$(mandir)"/nearcrawl.1 "$(DESTDIR)$(mandir)"/nearcrawl-*.1 \
	"$(DESTDIR)$(PREFIX)/share/bash-completion/completions/nearcrawl" \
	"$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_nearcrawl" \
	"$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/nearcrawl.fish"
	@echo "left: $(DESTDIR)/etc/nearcrawl and the state in /var/lib/nearcrawl"
