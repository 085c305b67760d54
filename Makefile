# Two commands: `make demo` and `make test`. Both install what they need.

CARGO ?= cargo
# A tool that is built here runs for seconds: it is built without optimisation.
INSTALL = CARGO_PROFILE_DEV_DEBUG=0 $(CARGO) install --debug --locked --no-default-features --root $(TOOLS)
# An existing mdbook of this version is used; else it is built once into .tools.
MDBOOK_VERSION := 0.5.4
TOOLS := $(CURDIR)/.tools
MDBOOK := $(TOOLS)/bin/mdbook
# So with cargo-deny.
DENY_VERSION := 0.20.2
DENY := $(TOOLS)/bin/cargo-deny
TARGET := $(or $(CARGO_TARGET_DIR),target)
NARROWS := $(TARGET)/release/narrows
# The laws are built for the kernel where that can be done: with clang and the compiler's own sources, or with objects
# that were built elsewhere; in any case with libelf and zlib.
CAN_BUILD_BPF := { [ -n "$$NARROWS_BPF_OBJECTS" ] || { command -v clang && \
	[ -d "$$(rustc --print sysroot)/lib/rustlib/src/rust/library" ]; }; } >/dev/null 2>&1 && \
	pkg-config --exists libelf zlib 2>/dev/null
BPF_NEEDS := need clang, libelf, zlib, pkg-config and rustup's rust-src
# All but the Python package, which needs Python.
CRATES := --workspace --exclude narrows-python
# Looked at where it is used: `toolchain` may have changed it.
FEATURES = $(shell if $(CAN_BUILD_BPF); then echo --features bpf; fi)

MACHINE := $(shell uname -m)
RELEASE = narrows-$(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)-$(MACHINE)-linux

.PHONY: demo test check-format toolchain tools lint unit python arm kernels book licences browser bench build install dist \
	static wheel sdist maturin crates clean help

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## build the simulator alone, run the demo, say where its report is
	@$(CARGO) build --profile demo --locked -p narrows --no-default-features
	@$(TARGET)/demo/narrows demo

build: ## build the whole command: target/release/narrows
	@$(CARGO) build --release --locked -p narrows $(FEATURES)

CHECKS := toolchain tools check-format lint browser unit python arm kernels book licences
# What is skipped goes into this file, a line each: by tests (`testing::skipped`), pytest, scripts and the recipes below.
SKIPPED := $(abspath $(TARGET))/skipped
skipped = { echo "skipped: $(1): $(2)"; [ -z "$$NARROWS_SKIPPED" ] || echo "$(1): $(2)" >>"$$NARROWS_SKIPPED"; }
# Something that can be installed is not here: a skip on a developer's machine, a failure in CI.
missing = if [ "$$CI" = true ]; then echo "error: $(1): $(2); CI has every tool" >&2; exit 1; else $(call skipped,$(1),$(2)); fi

test: ## every check; what was skipped is counted last
	@mkdir -p $(TARGET) && : >$(SKIPPED)
	@NARROWS_SKIPPED=$(SKIPPED) $(MAKE) --no-print-directory $(CHECKS)
	@sort -u $(SKIPPED) | awk '{ at = index($$0, ": "); all = all (NR > 1 ? ", " : " ") substr($$0, 1, at - 1) " (" substr($$0, at + 2) ")" } \
	  END { print NR ? NR (NR > 1 ? " tests skipped:" : " test skipped:") all : "no test was skipped" }'

check-format:
	$(CARGO) fmt --all --check

lint:
	$(CARGO) clippy $(CRATES) --all-targets --locked $(FEATURES) -- -D warnings
	$(if $(FEATURES),$(CARGO) clippy $(CRATES) --all-targets --locked -- -D warnings)
	$(CARGO) clippy -p narrows-codes --no-default-features --locked -- -D warnings
	$(CARGO) clippy -p narrows -p narrows-scenario --no-default-features --all-targets --locked -- -D warnings
	$(CARGO) clippy -p narrows --no-default-features --features null-crypto --locked -- -D warnings
	@if $(HAS_PYTHON); then set -x; $(CARGO) clippy -p narrows-python --no-default-features --locked -- -D warnings; fi

unit:
	NARROWS_ALL_CASES=1 $(CARGO) test $(CRATES) --locked --no-fail-fast $(FEATURES)
	$(CARGO) test --locked -p narrows --no-default-features --test cli build_without
	$(CARGO) test --locked -p narrows-virtual-endpoint --features null-crypto
	$(CARGO) test $(CRATES) --locked $(FEATURES) --test engine -- --ignored
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc $(CRATES) --no-deps --document-private-items --locked --quiet $(FEATURES)

# Python with what the tests need, apart from the system's.
VENV := $(TOOLS)/python
HAS_PYTHON := python3 -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 10))' 2>/dev/null

python: ## check the Python package, as it is built for tests: without the transport
	@if $(HAS_PYTHON); then set -e; [ -x $(VENV)/bin/pip ] || python3 -m venv $(VENV); \
	  $(VENV)/bin/pip install -q --disable-pip-version-check -r python/tests/requirements.txt; \
	  export VIRTUAL_ENV=$(VENV) PATH=$(VENV)/bin:$$PATH; \
	  ruff format --check -q && ruff check -q && \
	  maturin develop -q --no-default-features && mypy && pytest -q; \
	else $(call missing,the Python package,needs python3 3.10 or later with venv); fi

ARM = aarch64-unknown-linux-musl
CAN_RUN_ARM := { command -v qemu-aarch64 && rustc --print target-libdir --target $(ARM) | xargs test -d; } >/dev/null 2>&1

arm: ## check lints, the erasure codes and results on Arm, under QEMU
	@$(CAN_RUN_ARM) || { rustup target add $(ARM) >/dev/null 2>&1; \
	  [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends qemu-user >/dev/null; } || true
	@if $(CAN_RUN_ARM); then $(CARGO) build $(CRATES) --locked $(FEATURES) --bin narrows && tests/arm/run $(TARGET)/debug/narrows; \
	else $(call missing,Arm,needs qemu-aarch64 and rustup's target $(ARM); not all are here); fi

# Without these the laws are not built for the kernel, and all the rest is.
toolchain:
	@$(CAN_BUILD_BPF) || { command -v rustup && rustup component add rust-src; } >/dev/null 2>&1 || true
	@$(CAN_BUILD_BPF) || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq clang libelf-dev zlib1g-dev pkg-config >/dev/null; } || true
	@$(CAN_BUILD_BPF) || \
	{ $(call missing,laws in the kernel,$(BPF_NEEDS); not all are here); }

# Programs that tests run. Where they cannot be installed, the tests that need them are skipped.
NEEDED := ping iperf3 rsync mpicc.mpich mpiexec.hydra nft perl cc setpriv
tools:
	@( PATH=$$PATH:/usr/sbin; for it in $(NEEDED); do command -v $$it >/dev/null || exit 1; done; \
	  echo '#include <mpi.h>' | mpicc.mpich -E - >/dev/null 2>&1 ) || \
	{ [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	  iputils-ping iperf3 rsync mpich libmpich-dev nftables perl gcc libc6-dev util-linux >/dev/null; } || true

kernels: ## check the laws on other kernels, in a virtual machine
	@{ command -v qemu-system-x86_64 && command -v busybox && command -v cpio; } >/dev/null || \
	{ [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	  qemu-system-x86 busybox-static cpio >/dev/null; } || true
	@tests/kernels/run

book: $(MDBOOK) ## build the book with the page of all claims, and check its links, numbers and pages of verdicts
	$(MDBOOK) build docs
	$(CARGO) build $(CRATES) --locked $(FEATURES) --bin narrows
	$(TARGET)/debug/narrows report --claims papers --out docs/book/claims.html
	@if python3 -c 'import tomllib' 2>/dev/null; then python3 docs/links.py && python3 docs/paper_numbers.py && \
	  python3 docs/sim_to_real.py --check && python3 docs/verdicts.py --check; \
	else $(call missing,links and numbers in the documentation,needs python3 3.11 or later); fi

$(MDBOOK):
	@if command -v mdbook >/dev/null && [ "$$(mdbook --version)" = "mdbook v$(MDBOOK_VERSION)" ]; then \
		mkdir -p $(TOOLS)/bin && ln -sf "$$(command -v mdbook)" $@; \
	else \
		$(INSTALL) mdbook --version $(MDBOOK_VERSION) --features search; \
	fi

# The report's tests open it in Chromium. Where that cannot be installed, they report themselves as skipped.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
	{ [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; } || \
	echo "no chromium here and no right to install it: the report's tests will be skipped"

licences: $(DENY)
	@$(DENY) --version >/dev/null && PATH=$(TOOLS)/bin:$$PATH $(CARGO) deny --locked check licenses bans sources

$(DENY):
	@if command -v cargo-deny >/dev/null; then mkdir -p $(TOOLS)/bin && ln -sf "$$(command -v cargo-deny)" $@; \
	else $(INSTALL) cargo-deny --version $(DENY_VERSION); fi

DIST = $(TARGET)/dist
# A directory, $(1), with the program $(2); then a tarball of the directory.
stage = rm -rf $(DIST)/$(1) && mkdir -p $(DIST)/$(1) && strip -o $(DIST)/$(1)/narrows $(2) && \
	cp LICENSE-APACHE LICENSE-MIT README.md CHANGELOG.md $(DIST)/$(1)
pack = tar -C $(DIST) --sort=name --owner=0 --group=0 --numeric-owner -czf $(DIST)/$(1).tar.gz $(1) && echo $(DIST)/$(1).tar.gz

dist: build static wheel sdist ## tarballs of the command (with the laws' BPF objects; static), a wheel and its sources
	@$(CAN_BUILD_BPF) || { echo "error: \`make toolchain\` first: a release has the laws in it"; exit 1; }
	@$(call stage,$(RELEASE),$(NARROWS))
	@$(NARROWS) kernel export $(DIST)/$(RELEASE)/bpf >/dev/null
	@$(call pack,$(RELEASE))

MUSL = $(MACHINE)-unknown-linux-musl
# The transport and the ledger have C in them.
CAN_BUILD_STATIC := { command -v musl-gcc && rustc --print target-libdir --target $(MUSL) | xargs test -d; } >/dev/null 2>&1

static: ## a tarball of the command as a static program, for any Linux; without the kernel part
	@$(CAN_BUILD_STATIC) || { rustup target add $(MUSL) >/dev/null 2>&1; \
	  [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends musl-tools >/dev/null; } || true
	@$(CAN_BUILD_STATIC) || { echo "error: a static program needs musl-gcc and rustup's target $(MUSL)"; exit 1; }
	@CC_$(subst -,_,$(MUSL))=musl-gcc $(CARGO) build --release --locked -p narrows --target $(MUSL)
	@$(call stage,$(RELEASE)-static,$(TARGET)/$(MUSL)/release/narrows)
	@$(call pack,$(RELEASE)-static)

# A wheel's tag names the oldest glibc that it runs with: maturin reads it from the symbols that the library needs.
wheel: maturin ## a wheel of the Python package, with the command in it
	@$(VENV)/bin/maturin build -q --release --out $(DIST)
	@ls $(DIST)/narrows-*.whl

sdist: maturin ## the sources of the Python package, from which pip builds it
	@mkdir -p $(DIST) && { $(VENV)/bin/maturin sdist --out $(DIST) 2>$(DIST)/sdist.log || { cat $(DIST)/sdist.log >&2; exit 1; }; }
	@ls $(DIST)/narrows-*[0-9].tar.gz

maturin:
	@$(HAS_PYTHON) || { echo "error: a wheel needs python3 3.10 or later, with venv"; exit 1; }
	@[ -x $(VENV)/bin/pip ] || python3 -m venv $(VENV)
	@$(VENV)/bin/pip install -q --disable-pip-version-check 'maturin>=1.9,<2'

crates: ## package the crates that can be published, and build each from its package; publishes none
	@$(CARGO) publish --workspace --dry-run --locked

# Where `install` puts what was built, as usual with make.
PREFIX ?= /usr/local
SHARE = $(DESTDIR)$(PREFIX)/share

install: ## after `make build`: the command, its manual pages and completions for bash, zsh and fish, under PREFIX
	@[ -x $(NARROWS) ] || { echo "error: there is no $(NARROWS); \`make build\` makes it"; exit 1; }
	@install -D $(NARROWS) $(DESTDIR)$(PREFIX)/bin/narrows
	@mkdir -p $(SHARE)/man/man1 $(SHARE)/bash-completion/completions $(SHARE)/zsh/site-functions $(SHARE)/fish/vendor_completions.d
	@$(NARROWS) completions bash >$(SHARE)/bash-completion/completions/narrows
	@$(NARROWS) completions zsh >$(SHARE)/zsh/site-functions/_narrows
	@$(NARROWS) completions fish >$(SHARE)/fish/vendor_completions.d/narrows.fish
	@$(NARROWS) man $(SHARE)/man/man1 >/dev/null
	@echo "installed under $(DESTDIR)$(PREFIX): bin/narrows, its manual pages, and completions for bash, zsh and fish"

bench: build ## measure the engine
	@$(NARROWS) bench engine

clean: ## remove what was built
	$(CARGO) clean
	rm -rf docs/book out
