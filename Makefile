# vNET: `make demo` shows the main job, `make test` proves it. Everything installed comes from here.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/vnet
export CARGO_TARGET_DIR ?= $(CACHE)/cargo
VENV := .venv
PY := $(VENV)/bin/python
RUST_SOURCES := Cargo.toml Cargo.lock $(shell find images/agent capture/reducer -name '*.rs' -o -name Cargo.toml)
BINARIES := target/release/vnet-agent target/release/vnet-reduce

.PHONY: goldens examples-check reproductions readings artefact setup demo check-fast test-all examples pictures papers atlas mutate chaos soak fuzz test test-bare test-fresh test-hil test-hosts test-servers check check-and-rust types bench wheel deb container release audit reproducible test-container site gallery figures middleware clean kernel lock packages toolchain format walk fidelity

# Bytecode, too: where the interpreter may not write it, each command would compile all that it loads.
setup: packages toolchain
	@$(MAKE) --no-print-directory -j 2 $(VENV)/installed $(BINARIES)
	@$(PY) -m compileall -q contract orchestrator capture reports vnet

packages:
	@images/packages.sh run build

toolchain:
	@command -v cargo >/dev/null || { echo "setup: cargo not found; install Rust stable (https://rustup.rs), 1.85 or newer" >&2; exit 1; }

# 4: no kernel here can carry the lab (no netem, and Debian's User-Mode Linux is too old for the processor): ours is built.
DEMO := $(VENV)/bin/vnet campaign run topologies/mqtt-demo.yaml --out results/mqtt-demo/$$(date +%Y%m%dT%H%M%S)
demo: setup
	@$(DEMO) || { [ $$? -eq 4 ] && $(MAKE) --no-print-directory kernel && $(DEMO); }

# Published examples, made anew by the present code (docs/examples/publish.py); EXAMPLES names some of them.
examples: setup
	@images/packages.sh kernel
	@images/kernel/build.sh
	@$(PY) docs/examples/publish.py $(EXAMPLES)

# Which examples are stale: a cell of each, run again, gives other files or figures (docs/examples/fresh.py). CI runs the cheapest.
examples-check: setup
	@images/packages.sh kernel
	@images/kernel/build.sh
	@$(PY) docs/examples/fresh.py $(EXAMPLES)

# Numbers of published examples in README.md and docs, as the examples' tables have them now; a test fails where they differ.
figures: setup
	@$(PY) docs/examples/figures.py

# docs/reproductions.md: every figure, table and claim of the works, from their rules and the published examples; a test fails where it is
# stale. `make artefact WORK=ccc_2011`: a work's claims as evaluators of artefacts ask for them, in target/artefact.
reproductions: setup
	@$(PY) docs/examples/reproductions.py

# Other readings of ambiguous sentences of the works (docs/examples/readings.toml), at full size: the hours are stated first; what was
# stopped goes on where it was. READINGS names some of them.
readings: setup
	@images/packages.sh kernel
	@images/kernel/build.sh
	@$(PY) docs/examples/readings.py --run $(READINGS)

artefact: setup
	@mkdir -p target/artefact
	@$(PY) docs/examples/reproductions.py --artefact "$(WORK)" >target/artefact/new.md
	@mv target/artefact/new.md target/artefact/$(WORK).md && echo "artefact: target/artefact/$(WORK).md"

# Every shipped topology's picture, run in virtual time and report (docs/gallery.md): some minutes; GALLERY names some of them.
gallery: setup
	@images/packages.sh kernel
	@images/kernel/build.sh
	@$(PY) docs/examples/gallery.py $(GALLERY)

# What docs/networks.md and docs/live-page.md show; the latter's are made by its tests on their way.
PICTURES := ring dumbbell priorities
pictures: setup
	@$(foreach name,$(PICTURES),$(VENV)/bin/vnet graph topologies/$(name).yaml -o docs/images/$(name).svg;)
	@images/packages.sh page
	@VNET_PICTURES=$(CURDIR)/docs/images $(PY) -m pytest tests/cli/test_page_whole.py tests/cli/test_page_browser.py

# Published experiments at full size in virtual time (docs/interaction-models.md, docs/power-protocols.md): some hours of two cores.
# What was stopped goes on where it was. PAPERS names some of them, or reserve-7-clock, whose chrony takes the place of the
# machine's own time daemon. The substations' stacks are links, so programs are to cost next to nothing.
PAPERS := mqtt-qos-campaign interaction-models ccc-2011 priority substation-flat substation-bays $(addprefix reserve-,8-efficiency 1a-latency 1b-latency 4-recovery 5-outage 3-highest-rate 6-corruption)
papers: setup
	@images/packages.sh kernel $(and $(filter reserve-7-clock,$(PAPERS)),clock)
	@images/kernel/build.sh
	@for name in $(PAPERS); do \
	  env $$(case $$name in substation-*) echo VNET_SYSCALL_COST=100ns;; esac) \
	  $(VENV)/bin/vnet campaign run $$(ls topologies/papers/$$name.yaml topologies/$$name.yaml 2>/dev/null | head -n 1) \
	    --time virtual --jobs 2 --out results/papers/$$name; done

# The atlas's data set (docs/atlas.md): 1,152 runs in virtual time, an hour or two of two cores; what was stopped goes on where it was.
atlas: setup
	@images/packages.sh kernel
	@images/kernel/build.sh
	@$(VENV)/bin/vnet atlas run --jobs 2 --data reports/atlas/data/atlas.parquet

# vNET's figures beside those of ping, iperf3, tc, tshark, /proc and closed forms, under each kernel, into docs/fidelity.md; two
# minutes of an idle machine. Root, for the machine's own kernel.
fidelity: setup
	@$(PY) bench/fidelity_page.py

# Virtual time is tested in the lab's own kernel: built once (5 minutes of two cores); 4: its source cannot be had, which is said.
# Virtual machines and labs on another machine are tested where they can be had, by root: with the built-in image, made once
# (half a minute), and an ssh server that only the tests start.
# A part that fails stops no other: tests/parts.py shows at the end what failed in each of them. The tests of one file run in one process.
# - WAITING are files of labs that wait more than they compute (real time, virtual machines, the command line): more processes than cores.
#   They leave cores idle, so the checks and then BESIDE, which types the commands of docs, run beside them, in one process.
# - ALONE measures times of a real lab, which a busy machine lengthens, or takes every core: one test after the other.
# - All others compute (labs in virtual time have a core each; no lab at all): a process a core, once those have ended.
WAITING := $(addprefix tests/,agent ansible bare cli doctor frames images kernel lab nics remote security multi_host vm \
  vnet queueing/test_queue_live.py queueing/test_traces_live.py scenarios/test_scenarios_in_a_guest.py \
  virtual/test_timers.py)
BESIDE := $(addprefix tests/,docs)
ALONE := $(addprefix tests/,scenarios/test_fidelity.py virtual/test_bound.py chaos/test_liars_real.py)
# CI=true: Hypothesis draws the same examples each time and does not judge how slow a busy machine draws them.
PYTEST := CI=true PYTHONPATH=tests/order tests/run.sh $(PY) -p longest_first
SIDE_BY_SIDE := --dist loadfile --no-loadscope-reorder -n
BUT = $(patsubst %,--ignore=%,$(1))
# Not optimised: built and run so from nothing they take 137 s of a core, with link-time optimisation 178 s; and an overflow fails a test.
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

# Long searches and repetitions, too (the marker `sweep`), and the goldens in a Debian that has other software installed (root).
test-all: SWEEPS := -m ''
test-all: LIVED_IN = "lived-in root: tests/bare/lived_in.sh"

# Format, lint, types, unit tests and goldens: under three minutes of two cores once all is built. FAST needs neither root nor real time.
# SLOWER are the longest of them, searches by chance, which `make test` runs.
FAST := $(addprefix tests/,topology plan exchange goldens capture doctor atlas software reports/test_reports_metrics.py)
SLOWER := $(addprefix tests/,capture/test_join_properties.py capture/test_reducer_random.py)
check-fast: setup
	@$(PY) tests/parts.py --side-by-side 2 "unit and golden tests: CI=true PYTHONPATH=tests/order $(PY) -m pytest -p longest_first $(SIDE_BY_SIDE) 2 $(FAST) $(call BUT,$(SLOWER))" $(CHECKS)

CHECKS = "format: $(VENV)/bin/ruff format --check ." "lint: $(VENV)/bin/ruff check ." "types: $(VENV)/bin/mypy" \
  "imports: $(VENV)/bin/lint-imports" "Rust's format: cargo fmt --check" \
  "Rust's lint: cargo clippy --release --locked --all-targets --all-features --quiet -- -D warnings" \
  "the page's types: make --no-print-directory types"
# The goldens anew, in the bare Debian in which CI judges them (docs/virtual-time.md): `make goldens REASON="why they change"`. Root.
goldens:
	@tests/goldens/in_bare.sh "$(REASON)"

check: setup
	@$(PY) tests/parts.py --side-by-side 2 $(CHECKS)
check-and-rust: setup
	@$(PY) tests/parts.py --side-by-side 2 $(RUST_TESTED) $(CHECKS)

# The live page's scripts, which ship as they are, against their types: TypeScript comes by its lock, where npm can get it.
PAGE := orchestrator/cli/page
TYPES := $(CACHE)/page-types
# Steps and returns between modules that a reader of `vnet run` goes through.
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
	$(PY) docs/wrap.py

# Shipped topologies, so many COUNT, and files of run directories, for so many SECONDS, changed by chance from a SEED on and
# planned and reported again (docs/reliability.md).
mutate: setup
	@$(PY) tests/chaos/mutated_topologies.py --count $(or $(COUNT),100000) --seed $(or $(SEED),0)
	@$(PY) tests/chaos/mutated.py --seconds $(or $(SECONDS),600) --seed $(or $(SEED),0)

# Faults at every step of a run, for so many SECONDS; commands while a guest's clock is set by an hour, so many CLOCKS; pairs of labs, one of
# each killed, among look-alikes, so many LABS (docs/reliability.md).
chaos: setup
	@images/packages.sh chaos
	@$(PY) tests/chaos/sweep.py --seconds $(or $(SECONDS),1500) --seed $(or $(SEED),0)
	@VNET_CLOCK_CASES=$(or $(CLOCKS),6) VNET_CLOCK_SEED=$(or $(SEED),0) $(PY) -m pytest -s -o timeout=0 tests/chaos/test_clock.py
	@VNET_DECOY_LABS=$(or $(LABS),20) $(PY) -m pytest -o timeout=0 tests/chaos/test_decoys.py

# Labs over several hosts, all that CI leaves out: 200 nodes over three, hosts killed and cut off, hosts with kernels of their own
# (built once, 5 minutes of two cores), virtual machines over two (docs/many-machines.md). Root.
test-hosts: setup
	@images/packages.sh kernel far vm
	@images/kernel/build.sh
	@tests/multi_host/kernel/build.sh
	@$(VENV)/bin/vnet images build builtin
	@VNET_TEST_HOSTS=test $(PY) -m pytest -o timeout=0 tests/multi_host/test_multi_host.py

# From three bare servers, which QEMU emulates, to a lab across them and a campaign over all of them, as docs/many-machines.md has it, with
# playbooks/host.yml and the Debian package. Root.
test-servers: setup
	@images/packages.sh kernel vm debian
	@images/kernel/build.sh
	@tests/servers/new_user.sh results/servers-$$(date +%Y%m%dT%H%M%S)

# Labs that come and go at random for so many SECONDS, and HOURS of one in virtual time: nothing grows (docs/reliability.md).
soak: setup
	@images/packages.sh kernel
	@images/kernel/build.sh
	@$(PY) tests/chaos/soak.py --seconds $(or $(SECONDS),3600) --seed $(or $(SEED),0)
	@$(PY) tests/chaos/soak_hours.py --hours $(or $(HOURS),12) --seed $(or $(SEED),0)

# What reads bytes of others, fuzzed with its coverage as the guide, each target for so many SECONDS, from the corpus that is
# kept; what is new of it is put back (docs/reliability.md).
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

# Virtual time is measured in the lab's own kernel, virtual machines where their packages and images are (it says so).
bench: setup
	@images/packages.sh bench kernel
	@images/kernel/build.sh || [ $$? -eq 4 ]
	@$(PY) bench/run.py --out bench.json

# Make targets on a machine with nothing but what images/packages.sh installs: a root of debootstrap (tests/bare/root.sh).
test-bare:
	@tests/bare/root.sh $(or $(TARGETS),setup check kernel bench demo lock)

# For machines without this tree (docs/installing.md): a wheel with agent and reducer; a Debian package with its Python packages, too.
wheel: setup
	@images/wheel.sh dist
	@ls -sh dist/*.whl

deb: wheel
	@images/deb.sh dist

# The package as an image file for container runtimes, by buildah, from a Debian of debootstrap's (root); then used in a container that
# allows what a runtime's defaults do (docs/installing.md).
container: deb
	@images/packages.sh container
	@images/container.sh dist

# What is handed out: wheel, Debian package and image, each with its bill of materials (CycloneDX, FILE.cdx.json), and all their
# sums; audited and built twice before (docs/installing.md). Root.
release: setup audit reproducible container
	@images/packages.sh release
	@lintian --allow-root --fail-on none dist/vnet_*.deb
	@cd dist && sha256sum $$(ls *.whl *.deb *.oci.tar *.cdx.json) >SHA256SUMS && cat SHA256SUMS

# Known holes in what both locks pin; what cannot be looked up here is said.
audit:
	@images/audit.sh

# Wheel and Debian package, built twice: their bytes are equal.
reproducible: setup
	@images/reproducible.sh deb

test-container: container
	@tests/bare/contained.sh dist/vnet-*.oci.tar

# The documentation as pages with search that load nothing from elsewhere (mkdocs.yml); it fails where a link leads nowhere.
site: setup
	@NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build # --quiet would not count warnings
	@echo "site: target/site; python3 -m http.server --bind 127.0.0.1 --directory target/site shows it, with search"

# Both, installed and used in a bare Debian that has nothing else of ours (root); then README's commands there, as root and as a user.
test-fresh: deb
	@tests/bare/fresh.sh $(if $(KEEP),--keep $(KEEP)) $(or $(TARGETS),demo)

# The NIC in the loop without the hardware: a nested machine with an emulated VT-d and a dual-port 82576 (docs/hil.md).
test-hil: setup
	@images/packages.sh vm hil
	@images/hil/run.sh results/hil $(TESTS)

# Pins every package by hash; names no index, so it holds wherever pip is pointed.
lock:
	$(VENV)/bin/pip install --quiet pip-tools
	$(VENV)/bin/pip-compile --quiet --generate-hashes --no-emit-index-url --no-emit-find-links --no-header \
	  --strip-extras --allow-unsafe --extra dev --extra docs --extra engines --extra vm -o requirements.lock pyproject.toml

kernel: setup
	@images/packages.sh kernel
	@images/kernel/build.sh

# Middleware and serialisers in Java, which the software `middleware` runs (docs/kinds/middleware.md); kept in $(CACHE) by its inputs.
# TEST=1: each serialiser's round trip and each middleware's exchange over loopback, too.
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
