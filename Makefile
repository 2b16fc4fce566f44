# SPDX-License-Identifier: Apache-2.0
# The front door.  meson and ninja do the work; this names the things people do.

PREFIX ?= /usr/local
BINARY ?= build/holdfast
DATA ?= .cache/run
CONFIG ?= $(firstword $(wildcard holdfast.json) deploy/examples/sample.json)
RUN_ARGS ?= --data $(DATA) --config $(CONFIG)

.DEFAULT_GOAL := build
.PHONY: build release run test test-long bench compare lint install uninstall deb clean help

build: ## build build/holdfast (release)
	@tools/install-deps --check run
	@tools/configure build -Dbuildtype=release -Db_lto=true
	@ninja -C build

release: ## build build-release/holdfast, optimised by what it does under load (a minute or two)
	@tools/install-deps --check run
	@tools/build-release

run: ## install what is missing, build, and serve on 127.0.0.1:4653 (CONFIG=FILE)
	@tools/install-deps run
	@$(MAKE) --no-print-directory build
	@mkdir -p .cache/run/vault && cp -rn deploy/examples/vault/. .cache/run/vault/
	@exec build/holdfast up $(RUN_ARGS)

test: ## install what is missing, build, and run every test
	@tools/install-deps test
	@/usr/bin/python3 tools/run-tests

test-long: ## the same with long fuzzing and the long end-to-end tests
	@tools/install-deps test
	@/usr/bin/python3 tools/run-tests --long

bench: ## measure beside nginx and PostgreSQL on this machine (BENCH_ARGS=--quick for a first look)
	@tools/install-deps bench
	@$(MAKE) --no-print-directory release
	@tools/configure build -Dbuildtype=release -Db_lto=true
	@ninja -C build bench/bench_load bench/bench_rest bench/bench_streams bench/bench_upstream
	@/usr/bin/python3 bench/run.py $(BENCH_ARGS)

compare: ## ask what a client meets when something ends, beside nginx and two MCP proxies of npm
	@tools/install-deps test
	@$(MAKE) --no-print-directory build
	@/usr/bin/python3 bench/compare.py

lint: ## formatting, clang-tidy, include arrows, names in docs, banned calls
	@tools/install-deps lint
	@tools/lint

install: $(if $(filter build/holdfast,$(BINARY)),build) ## install to PREFIX (default /usr/local; DESTDIR is honoured; BINARY=FILE installs another build)
	@BINARY="$(BINARY)" tools/install-files install "$(DESTDIR)" "$(PREFIX)"

uninstall: ## remove what make install installed; configuration and data stay
	@tools/install-files uninstall "$(DESTDIR)" "$(PREFIX)"

deb: ## build dist/holdfast_VERSION_ARCH.deb (Debian 12), with its SBOM
	@tools/install-deps deb
	@tools/build-deb

clean: ## remove what the build made
	rm -rf build build-deb dist build-release build-test build-e2e build-tsan build-fuzz build-tidy

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | \
		while IFS='|' read -r name what; do printf 'make %-10s %s\n' "$$name" "$$what"; done
