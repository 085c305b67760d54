# Two commands: `make demo` and `make test`. Both install what they need.

CARGO ?= cargo
# An existing mdbook of this version is used; else it is built once into .tools.
MDBOOK_VERSION := 0.5.4
TOOLS := $(CURDIR)/.tools
MDBOOK := $(TOOLS)/bin/mdbook
NARROWS := $(or $(CARGO_TARGET_DIR),target)/release/narrows

.PHONY: demo test check-format lint unit book licences browser bench build clean help

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: build ## build, run the demo, print its table, say where the report is
	@$(NARROWS) demo

build: ## build the narrows command
	@$(CARGO) build --release --locked -p narrows

test: check-format lint browser unit book licences ## every check

check-format:
	$(CARGO) fmt --all --check

lint:
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

unit:
	$(CARGO) test --workspace --locked
	$(CARGO) test --release --locked -p narrows-sim --test analytic_marks -- --ignored
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked --quiet

book: $(MDBOOK)
	$(MDBOOK) build docs

$(MDBOOK):
	@if command -v mdbook >/dev/null && [ "$$(mdbook --version)" = "mdbook v$(MDBOOK_VERSION)" ]; then \
		mkdir -p $(TOOLS)/bin && ln -sf "$$(command -v mdbook)" $@; \
	else \
		$(CARGO) install mdbook --version $(MDBOOK_VERSION) --locked --no-default-features --features search --root $(TOOLS); \
	fi

# The report's test opens it in Chromium. Where that cannot be installed, the test reports itself as skipped.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
	{ [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; } || \
	echo "skipped: no chromium here and no right to install it; the browser test will say so too"

licences:
	@if command -v cargo-deny >/dev/null; then $(CARGO) deny --locked check licenses bans sources; \
	else echo "skipped: the check of licences needs cargo-deny"; fi

bench: build ## measure the engine
	@$(NARROWS) bench engine

clean: ## remove what was built
	$(CARGO) clean
	rm -rf docs/book out
