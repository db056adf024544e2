# vNET: `make demo` shows the main job, `make test` proves it. This file installs everything that they need.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/vnet
export CARGO_TARGET_DIR ?= $(CACHE)/cargo
VENV := .venv
PY := $(VENV)/bin/python
RUST_SOURCES := Cargo.toml Cargo.lock $(shell find images/agent capture/reducer -name '*.rs' -o -name Cargo.toml)
BINARIES := target/release/vnet-agent target/release/vnet-reduce

.PHONY: brokers goldens examples-check reproductions readings artefact setup demo check-fast test-all examples pictures papers atlas mutate chaos soak fuzz test test-bare test-fresh test-hil test-hosts test-servers check check-and-rust types bench wheel deb container release audit reproducible test-container site gallery figures middleware clean kernel lock packages toolchain format walk fidelity

# Compiles bytecode too: where the interpreter cannot write it, each command would compile everything that it loads.
setup: packages toolchain
	@$(MAKE) --no-print-directory -j 2 $(VENV)/installed $(BINARIES)
	@$(PY) -m compileall -q contract orchestrator capture reports vnet

packages:
	@images/packages.sh run build

toolchain:
	@command -v cargo >/dev/null || { echo "setup: cargo not found; install Rust stable (https://rustup.rs), 1.85 or newer" >&2; exit 1; }

# Status 4: no kernel here can carry the lab (no netem, and Debian's User-Mode Linux is too old for the processor), so vNET's is built.
DEMO := $(VENV)/bin/vnet campaign run topologies/mqtt-demo.yaml --out results/mqtt-demo/$$(date +%Y%m%dT%H%M%S)
demo: setup
	@$(DEMO) || { [ $$? -eq 4 ] && $(MAKE) --no-print-directory kernel && $(DEMO); }

# Brokers that Debian does not have (docs/kinds/mqtt.md), from their registries: needs go, cargo and root; BROKERS names some.
brokers:
	@images/packages.sh brokers
	@images/brokers/build.sh $(BROKERS)

# Makes the published examples again with the present code (docs/examples/publish.py); EXAMPLES selects some.
examples: setup
	@images/packages.sh kernel
	@images/kernel/build.sh
	@$(PY) docs/examples/publish.py $(EXAMPLES)

# Names stale examples: runs one cell of each again and compares files and figures (docs/examples/fresh.py). CI runs the cheapest.
examples-check: setup
	@images/packages.sh kernel
	@images/kernel/build.sh
	@$(PY) docs/examples/fresh.py $(EXAMPLES)

# Inserts the numbers of published examples into README.md and docs from the examples' tables; a test fails where they differ.
figures: setup
	@$(PY) docs/examples/figures.py

# Writes docs/reproductions.md: every figure, table and claim of the works, from their rules and the published examples; a test fails if it is
# stale. `make artefact WORK=ccc_2011` writes one work's claims, in the form that artefact evaluators want, into target/artefact.
reproductions: setup
	@$(PY) docs/examples/reproductions.py

# Runs other readings of ambiguous sentences of the works (docs/examples/readings.toml) at full size. It prints the hours first, and
# continues after an interruption. READINGS selects some.
readings: setup
	@images/packages.sh kernel
	@images/kernel/build.sh
	@$(PY) docs/examples/readings.py --run $(READINGS)

artefact: setup
	@mkdir -p target/artefact
	@$(PY) docs/examples/reproductions.py --artefact "$(WORK)" >target/artefact/new.md
	@mv target/artefact/new.md target/artefact/$(WORK).md && echo "artefact: target/artefact/$(WORK).md"

# Draws, runs in virtual time and reports every shipped topology (docs/gallery.md): some minutes; GALLERY selects some.
gallery: setup
	@images/packages.sh kernel
	@images/kernel/build.sh
	@$(PY) docs/examples/gallery.py $(GALLERY)

# Makes the pictures of docs/networks.md, docs/live-page.md and docs/report.md; tests take those of the latter two.
PICTURES := ring dumbbell priorities
pictures: setup
	@$(foreach name,$(PICTURES),$(VENV)/bin/vnet graph topologies/$(name).yaml -o docs/images/$(name).svg;)
	@images/packages.sh page
	@VNET_PICTURES=$(CURDIR)/docs/images $(PY) -m pytest tests/cli/test_page_whole.py tests/cli/test_page_browser.py \
	  tests/docs/test_readme.py

# Runs published experiments at full size in virtual time (docs/interaction-models.md, docs/power-protocols.md): some hours of two cores.
# It continues after an interruption. PAPERS selects some, or reserve-7-clock, whose chrony replaces the
# machine's own time daemon. The substations model network stacks as links, so programs must cost next to no CPU time.
PAPERS := mqtt-qos-campaign interaction-models ccc-2011 priority substation-flat substation-bays $(addprefix reserve-,8-efficiency 1a-latency 1b-latency 4-recovery 5-outage 3-highest-rate 6-corruption)
papers: setup
	@images/packages.sh kernel $(and $(filter reserve-7-clock,$(PAPERS)),clock)
	@images/kernel/build.sh
	@for name in $(PAPERS); do \
	  env $$(case $$name in substation-*) echo VNET_SYSCALL_COST=100ns;; esac) \
	  $(VENV)/bin/vnet campaign run $$(ls topologies/papers/$$name.yaml topologies/$$name.yaml 2>/dev/null | head -n 1) \
	    --time virtual --jobs 2 --out results/papers/$$name; done

# Makes the atlas's data set (docs/atlas.md): 1,152 runs in virtual time, an hour or two of two cores; continues after an interruption.
atlas: setup
	@images/packages.sh kernel
	@images/kernel/build.sh
	@$(VENV)/bin/vnet atlas run --jobs 2 --data reports/atlas/data/atlas.parquet

# Writes vNET's figures beside those of ping, iperf3, tc, tshark, /proc and closed forms, under each kernel, into docs/fidelity.md; takes two
# minutes of an idle machine. Needs root for the machine's own kernel.
fidelity: setup
	@$(PY) bench/fidelity_page.py

# Tests of virtual time need the lab's own kernel, which is built once (5 minutes of two cores); status 4: its source is unavailable.
# Root also tests virtual machines and labs on another machine where that is possible: with the built-in image, built once
# (half a minute), and an ssh server that only the tests start.
# A part that fails does not stop the others: tests/parts.py shows the failures of all parts at the end. One process runs all tests of a file.
# - WAITING: labs that wait more than they compute (real time, virtual machines, the command line) run in more processes than cores.
#   They leave cores idle, so the checks, and then BESIDE, which runs the commands of docs, run at the same time in one process.
# - ALONE: tests that measure times of a real lab, which a busy machine lengthens, or that use every core, run one after the other.
# - All others compute (labs in virtual time use one core each) and run after those, in one process for each core.
WAITING := $(addprefix tests/,agent ansible bare cli doctor frames images kernel lab nics remote security multi_host vm \
  vnet queueing/test_queue_live.py queueing/test_traces_live.py scenarios/test_scenarios_in_a_guest.py \
  virtual/test_timers.py)
BESIDE := $(addprefix tests/,docs)
ALONE := $(addprefix tests/,scenarios/test_fidelity.py virtual/test_bound.py chaos/test_liars_real.py)
# CI=true: Hypothesis draws the same examples each time and does not judge how slow a busy machine draws them.
PYTEST := CI=true PYTHONPATH=tests/order tests/run.sh $(PY) -p longest_first
SIDE_BY_SIDE := --dist loadfile --no-loadscope-reorder -n
BUT = $(patsubst %,--ignore=%,$(1))
# Rust tests are not optimised: build and run take 137 s of a core, with link-time optimisation 178 s; and an overflow fails a test.
RUST_TESTS := cargo test --locked --quiet --no-fail-fast
RUST_TESTED = "Rust's tests: $(RUST_TESTS) || { echo 'tests: those of Rust once more, one after the other:'; $(RUST_TESTS) -- --test-threads 1; }"
test test-all: setup
	@images/packages.sh kernel chaos
	@images/kernel/build.sh || [ $$? -eq 4 ]
	@[ "$$(id -u)" -ne 0 ] || { images/packages.sh vm debian far page slurm services && for image in builtin builtin-router; do $(VENV)/bin/vnet images build $$image; done; }
	@$(PY) tests/parts.py --side-by-side 2 \
	  "side by side, waiting: $(PYTEST) $(SWEEPS) $(SIDE_BY_SIDE) $$((2 * $$(nproc))) $(WAITING)" \
	  "checks and Rust's tests: make --no-print-directory check-and-rust" \
	  "beside those that wait: $(PYTEST) $(SWEEPS) $(BESIDE)" \
	  --side-by-side 1 \
	  "side by side, computing: $(PYTEST) $(SWEEPS) $(SIDE_BY_SIDE) $$(nproc) $(call BUT,$(WAITING) $(BESIDE) $(ALONE))" \
	  "alone: $(PYTEST) $(SWEEPS) $(ALONE)" $(LIVED_IN)

# Also runs long searches and repetitions (the marker `sweep`), and the goldens in a Debian with other software installed (root).
test-all: SWEEPS := -m ''
test-all: LIVED_IN = "lived-in root: tests/bare/lived_in.sh"

# Checks format, lint and types, runs unit tests and goldens: under three minutes of two cores after the build. FAST needs no root, no real time.
# SLOWER are the longest of these tests, random searches; only `make test` runs them.
FAST := $(addprefix tests/,topology plan exchange goldens capture doctor atlas software reports/test_reports_metrics.py)
SLOWER := $(addprefix tests/,capture/test_join_properties.py capture/test_reducer_random.py)
check-fast: setup
	@$(PY) tests/parts.py --side-by-side 2 "unit and golden tests: CI=true PYTHONPATH=tests/order $(PY) -m pytest -p longest_first $(SIDE_BY_SIDE) 2 $(FAST) $(call BUT,$(SLOWER))" $(CHECKS)

# The agent's roles are modules that a macro declares, and cargo fmt does not see those.
ROLES = $(wildcard images/agent/src/roles/*.rs images/agent/src/roles/*/mod.rs)
CHECKS = "format: $(VENV)/bin/ruff format --check ." "lint: $(VENV)/bin/ruff check ." "types: $(VENV)/bin/mypy" \
  "imports: $(VENV)/bin/lint-imports" "Rust's format: cargo fmt --check && rustfmt --edition 2024 --check $(ROLES)" \
  "Rust's lint: cargo clippy --release --locked --all-targets --all-features --quiet -- -D warnings" \
  "the page's types: make --no-print-directory types"
# Makes the goldens again in the bare Debian in which CI compares them (docs/virtual-time.md): `make goldens REASON="why they change"`. Root.
goldens:
	@tests/goldens/in_bare.sh "$(REASON)"

check: setup
	@$(PY) tests/parts.py --side-by-side 2 $(CHECKS)
check-and-rust: setup
	@$(PY) tests/parts.py --side-by-side 2 $(RUST_TESTED) $(CHECKS)

# Checks the types of the live page's scripts, which ship without compilation; npm installs TypeScript as locked, if it can.
PAGE := orchestrator/cli/page
TYPES := $(CACHE)/page-types
# Counts the steps and returns between modules for a reader who follows `vnet run`.
walk: setup
	@$(PY) tests/walk.py

types:
	@command -v npm >/dev/null || { echo "check: no npm: the live page's types are not checked"; exit 0; }; \
	cmp -s $(PAGE)/package-lock.json $(TYPES)/package-lock.json || { \
	  rm -rf $(TYPES) && mkdir -p $(TYPES).new && cp $(PAGE)/package*.json $(TYPES).new/ && \
	  (cd $(TYPES).new && npm ci --silent --no-audit --no-fund --ignore-scripts) && mv $(TYPES).new $(TYPES); } || \
	  { rm -rf $(TYPES).new; echo "check: npm did not get TypeScript: the live page's types are not checked"; exit 0; }; \
	node $(TYPES)/node_modules/typescript/bin/tsc -p $(PAGE)/tsconfig.json

format:
	$(VENV)/bin/ruff format .
	cargo fmt
	rustfmt --edition 2024 $(ROLES)
	$(PY) docs/wrap.py

# Changes COUNT shipped topologies at random, and files of run directories for SECONDS, drawn by SEED; plans
# and reports each again (docs/reliability.md).
mutate: setup
	@$(PY) tests/chaos/mutated_topologies.py --count $(or $(COUNT),100000) --seed $(or $(SEED),0)
	@$(PY) tests/chaos/mutated.py --seconds $(or $(SECONDS),600) --seed $(or $(SEED),0)

# Injects faults at every step of a run for SECONDS; runs CLOCKS commands while a guest's clock is set by an hour, and LABS pairs of labs,
# of which one is killed beside objects with similar names (docs/reliability.md).
chaos: setup
	@images/packages.sh chaos
	@$(PY) tests/chaos/sweep.py --seconds $(or $(SECONDS),1500) --seed $(or $(SEED),0)
	@VNET_CLOCK_CASES=$(or $(CLOCKS),6) VNET_CLOCK_SEED=$(or $(SEED),0) $(PY) -m pytest -s -o timeout=0 tests/chaos/test_clock.py
	@VNET_DECOY_LABS=$(or $(LABS),20) $(PY) -m pytest -o timeout=0 tests/chaos/test_decoys.py

# Runs the labs over several hosts that CI leaves out: 200 nodes over three, hosts killed and cut off, hosts with kernels of their own
# (built once, 5 minutes of two cores), virtual machines over two (docs/many-machines.md). Root.
test-hosts: setup
	@images/packages.sh kernel far vm
	@images/kernel/build.sh
	@tests/multi_host/kernel/build.sh
	@$(VENV)/bin/vnet images build builtin
	@VNET_TEST_HOSTS=test $(PY) -m pytest -o timeout=0 tests/multi_host/test_multi_host.py

# Follows docs/many-machines.md from three bare servers, which QEMU emulates, to a lab across them and a campaign over all of them, with
# playbooks/host.yml and the Debian package. Needs root.
test-servers: setup
	@images/packages.sh kernel vm debian
	@images/kernel/build.sh
	@tests/servers/new_user.sh results/servers-$$(date +%Y%m%dT%H%M%S)

# Starts and ends labs at random for SECONDS, and runs one for HOURS in virtual time: nothing may grow (docs/reliability.md).
soak: setup
	@images/packages.sh kernel
	@images/kernel/build.sh
	@$(PY) tests/chaos/soak.py --seconds $(or $(SECONDS),3600) --seed $(or $(SEED),0)
	@$(PY) tests/chaos/soak_hours.py --hours $(or $(HOURS),12) --seed $(or $(SEED),0)

# Fuzzes all code that reads foreign bytes, guided by coverage, each target for SECONDS, from the
# kept corpus; adds new inputs to it (docs/reliability.md).
FUZZED := reducer peers requests
fuzz: setup
	@images/packages.sh fuzz
	@command -v cargo-fuzz >/dev/null || cargo install --quiet --locked cargo-fuzz@0.13.1
	@set -e; for target in $(FUZZED); do \
	  work=$(CACHE)/fuzz/$$target; mkdir -p $$work/grown; tar -xJf fuzz/corpora/$$target.tar.xz -C $$work; \
	  RUSTC_BOOTSTRAP=1 cargo fuzz run --sanitizer none $$target $$work/grown $$work/corpus -- \
	    -max_total_time=$(or $(SECONDS),3600) -timeout=20 -rss_limit_mb=2048 -print_final_stats=1; \
	  rm -rf $$work/least; mkdir $$work/least; \
	  RUSTC_BOOTSTRAP=1 cargo fuzz run --sanitizer none $$target -- -merge=1 $$work/least $$work/grown $$work/corpus; \
	  rm -rf $$work/corpus; mv $$work/least $$work/corpus; \
	  tar -cJf fuzz/corpora/$$target.tar.xz --sort=name --mtime=@0 --owner=0 --group=0 -C $$work corpus; \
	done

# Measures virtual time in the lab's own kernel, and virtual machines if their packages and images are here; prints what it leaves out.
bench: setup
	@images/packages.sh bench kernel
	@images/kernel/build.sh || [ $$? -eq 4 ]
	@$(PY) bench/run.py --out bench.json

# Runs make targets on a machine that has only what images/packages.sh installs: a root of debootstrap (tests/bare/root.sh).
test-bare:
	@tests/bare/root.sh $(or $(TARGETS),setup check kernel bench demo lock)

# Builds packages for machines without this tree (docs/installing.md): a wheel with agent and reducer; a Debian package with all of Python's, too.
wheel: setup
	@images/wheel.sh dist
	@ls -sh dist/*.whl

deb: wheel
	@images/deb.sh dist

# Builds an image file for container runtimes from the package, with buildah and debootstrap (root); the test uses it in a container that
# has a runtime's default permissions (docs/installing.md).
container: deb
	@images/packages.sh container
	@images/container.sh dist

# Makes a release: wheel, Debian package and image, each with its bill of materials (CycloneDX, FILE.cdx.json), and all their
# sums; audits them and builds them twice before (docs/installing.md). Needs root.
release: setup audit reproducible container
	@images/packages.sh release
	@lintian --allow-root --fail-on none dist/vnet_*.deb
	@cd dist && sha256sum $$(ls *.whl *.deb *.oci.tar *.cdx.json) >SHA256SUMS && cat SHA256SUMS

# Lists known vulnerabilities of the packages that both locks pin; names packages that it cannot look up.
audit:
	@images/audit.sh

# Builds wheel and Debian package twice, and compares their bytes.
reproducible: setup
	@images/reproducible.sh deb

test-container: container
	@tests/bare/contained.sh dist/vnet-*.oci.tar

# Builds the documentation as pages with search, which load nothing from elsewhere (mkdocs.yml); a broken link is an error.
site: setup
	@NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build # --quiet would not count warnings
	@echo "site: target/site; python3 -m http.server --bind 127.0.0.1 --directory target/site shows it, with search"

# Installs and uses wheel and package in a bare Debian (root); then runs README's commands there, as root and as a user.
test-fresh: deb
	@tests/bare/fresh.sh $(if $(KEEP),--keep $(KEEP)) $(or $(TARGETS),demo)

# Tests the NIC in the loop without hardware: in a nested machine with an emulated VT-d and a dual-port 82576 (docs/hil.md).
test-hil: setup
	@images/packages.sh vm hil
	@images/hil/run.sh results/hil $(TESTS)

# Pins every package by hash; names no index, so it is valid for any index that pip uses.
lock:
	$(VENV)/bin/pip install --quiet pip-tools
	$(VENV)/bin/pip-compile --quiet --generate-hashes --no-emit-index-url --no-emit-find-links --no-header \
	  --strip-extras --allow-unsafe --extra dev --extra docs --extra engines --extra vm -o requirements.lock pyproject.toml

kernel: setup
	@images/packages.sh kernel
	@images/kernel/build.sh

# Builds the Java middleware and serialisers that the software `middleware` runs (docs/kinds/middleware.md); $(CACHE) keeps them by their inputs.
# TEST=1 also tests each serialiser's round trip and each middleware's exchange over loopback.
middleware:
	@images/packages.sh middleware
	@CACHE=$(CACHE) images/middleware/build.sh $(if $(TEST),--test)

# The interpreter must be readable by every user who runs labs, so Debian's own comes first. pip would compile on one core; files that
# are templates, or for other versions of Python, cannot be compiled.
$(VENV)/installed: requirements.lock pyproject.toml
	@python=$$(images/python.sh); \
	echo "setup: Python environment with $$python"; \
	[ -x $(PY) ] || $$python -m venv $(VENV); \
	$(VENV)/bin/pip install --quiet --no-compile --require-hashes -r requirements.lock; \
	$(VENV)/bin/pip install --quiet --no-deps --no-build-isolation -e .; \
	$(PY) -m compileall -qq -j 0 $(VENV)/lib || true; \
	touch $@

$(BINARIES) &: $(RUST_SOURCES)
	@echo "setup: Rust build (about 3 minutes the first time; cached in $(CARGO_TARGET_DIR))"
	@cargo build --release --locked --quiet
	@install -D -t target/release $(addprefix $(CARGO_TARGET_DIR)/release/,$(notdir $(BINARIES)))

clean:
	rm -rf $(VENV) target build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info bench.json
