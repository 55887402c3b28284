# SPDX-License-Identifier: MIT
#
# make            build everything into build/ (SAN=1: with ASan and UBSan, into build/san/)
# make run        show the three modes on a small internet of its own; AGENT="cmd ..." runs yours, CONSOLE=1 shows it in a browser
# make check      in under a minute: unit tests, layers, policy cases, a smoke test of the gate
# make test       build and run every test; T="words" for pytest: T="-x -k takeover" (unit tests run all the same)
# make test-unit  the unit tests alone; make test-e2e: the others alone, or the files in T="tests/e2e/test_dns.py -x"
# make coverage   run the unit and e2e tests with gcov, print how many lines of user/ they reach
# make test-private  the end-to-end and attack tests with sandboxes that have networks of their own: network: private
# make test-adopted  the tests of what the gate promises, from inside containers that are adopted: ADOPTED="container podman docker"
# make test-containers  containers of Podman and Docker: born in a sandbox, and adopted while they run
# make test-browser  the console's page in Chromium; leaves pictures of it in build/browser/
# make test-browser-soak  the page under 50 events a second for ten minutes, and with a history of 100,000
# make test-clients  curl, wget, Python, Node, Go, Java, git, npm, apt and others through the inspector
# make test-monitoring  metrics and alert rules by Debian's promtool, HAR by its schema
# make test-upgrade  from builds of ABI versions 4 and 7, made from the git history, to this one, and from this one to the next, under traffic
# make bench      measure, print ratios, write JSON into build/bench/; QUICK=1: less of everything, T="--only run,restart": some parts
# make vm         run the gate on Debian's 6.1 and 6.12 kernels, emulated: KERNELS="6.1 6.12 6.12-nolsm"
# make differential  DIFF_POLICIES (1000) random policies against a real sandbox, the manual and explain; DIFF_SEED repeats one
# make mutate     MUTANTS (20000) requests and responses that are nearly right, to three origins each; MUTANTS_SEED repeats one
# make soak       the test of leaks for SOAK_ROUNDS (300) of about 1,200 requests each
# make fuzz       run each fuzz target for FUZZ_SECONDS (60)
# make lint       clang-format, cppcheck and clang-tidy
# make prove      beside make test: lint, the unit tests under sanitizers, a short fuzz of every target
# make deps       install what is missing, with apt-get
# make man        build the manual pages
# make install    PREFIX=/usr/local DESTDIR=
# make uninstall  remove what make install put there, with the same PREFIX and DESTDIR; records and policies of yours stay
# make clean      remove build/
# V=1             show the commands

MAKEFLAGS += --no-builtin-rules
.SUFFIXES:
.DELETE_ON_ERROR:

PREFIX ?= /usr/local
CC = gcc
CLANG = clang
BPFTOOL = /usr/sbin/bpftool
PYTHON = /usr/bin/python3
VERSION := 0.1.0

ifeq ($(V),1)
Q =
say = @true
else
Q = @
say = @printf '  %-8s %s\n'
endif

# Without warnings: counters bring false ones, and the other builds have them.
ifeq ($(COVERAGE),1)
BUILD = build/coverage
SANFLAGS = --coverage -fprofile-update=atomic -O1 -w
else ifeq ($(SAN),1)
BUILD = build/san
SANFLAGS = -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
else
BUILD = build
SANFLAGS =
endif

# -iquote, not -I: include/gate_limits.h user/vocab/limits.h must not hide the C library's.
CPPFLAGS = -D_GNU_SOURCE -DNETPAWL_VERSION='"$(VERSION)"' -iquote include -iquote user -iquote $(BUILD)
CFLAGS = -std=gnu11 -O2 -g -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	 -Wpointer-arith -Wformat=2 -Wvla -fstack-protector-strong -fPIE $(SANFLAGS)
ifneq ($(SAN),1)
CPPFLAGS += -D_FORTIFY_SOURCE=2
endif
LDFLAGS = -pie -Wl,-z,relro,-z,now $(SANFLAGS)
BPF_CFLAGS = -target bpf -mcpu=v3 -O2 -g -Wall -Wextra -Werror -Wno-missing-declarations \
	     -I/usr/include/$(shell gcc -dumpmachine) -iquote include -iquote vmlinux -iquote bpf

POLICY_LIBS = -lyaml -lidn2 -lnettle -lm
INSPECT_LIBS = -lssl -lcrypto -lnghttp2 -lcares -lseccomp -lz -lbrotlidec -lzstd $(POLICY_LIBS)
DAEMON_LIBS = -lbpf -lelf -lz -lmicrohttpd -ljansson -lsqlite3 -lpsl -lnftables $(POLICY_LIBS)
CLI_LIBS = -ljansson -lncursesw -ltinfo $(POLICY_LIBS)
RUN_LIBS = -ljansson -lnettle
DECIDE_LIBS = -ljansson -lseccomp
EXPORT_LIBS = -lmicrohttpd -ljansson -lseccomp
CONSOLE_LIBS = -lmicrohttpd -ljansson -lseccomp -lpthread $(POLICY_LIBS)

srcs = $(sort $(wildcard $(addsuffix /*.c,$(addprefix user/,$(1)))))
# base/sql.c is the daemon's alone: no other program links SQLite.
objs = $(filter-out $(BUILD)/obj/base/sql.o,$(patsubst user/%.c,$(BUILD)/obj/%.o,$(call srcs,$(1))))

# Which folders a program is made of. tests/layers checks it against the table of who may use whom.
SHARED_DIRS = base vocab wire policy
DAEMON_DIRS = $(SHARED_DIRS) loop link netns containers session events kernel control supervisor vault daemon
CLI_DIRS = $(SHARED_DIRS) api_client containers launch cli
RUN_DIRS = base vocab api_client launch launcher
HOOK_DIRS = base vocab containers api_client launch hook
CNI_DIRS = base vocab containers api_client cni
INSPECT_DIRS = $(SHARED_DIRS) loop link http net resolver tls dns secrets inspect
DECIDE_DIRS = base vocab link decider
EXPORT_DIRS = base vocab link api_client exporter
CONSOLE_DIRS = $(SHARED_DIRS) api_client console
DAEMON_OBJS = $(call objs,$(DAEMON_DIRS)) $(BUILD)/obj/base/sql.o $(BUILD)/obj/dns/synthetic_names.o \
	      $(addprefix $(BUILD)/obj/secrets/,locked.o placeholder.o secrets.o)
CLI_OBJS = $(call objs,$(CLI_DIRS))
RUN_OBJS = $(call objs,$(RUN_DIRS))
HOOK_OBJS = $(call objs,$(HOOK_DIRS))
CONSOLE_OBJS = $(call objs,$(CONSOLE_DIRS))
# Debian ships llhttp as generated C, to be compiled in.
LLHTTP = /usr/share/llhttp
LLHTTP_OBJS = $(patsubst %,$(BUILD)/obj/llhttp/%.o,api http llhttp)
INSPECT_OBJS = $(LLHTTP_OBJS) $(call objs,$(INSPECT_DIRS))

all: $(BUILD)/netpawld $(BUILD)/netpawl $(BUILD)/netpawl-run $(BUILD)/netpawl-inspect $(BUILD)/netpawl-decide $(BUILD)/netpawl-init \
     $(BUILD)/netpawl-oci-hook $(BUILD)/netpawl-cni $(BUILD)/netpawl-console $(BUILD)/netpawl-export
.PHONY: all

$(BUILD)/netpawld: $(DAEMON_OBJS)
	$(say) LINK $@
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(DAEMON_LIBS)

$(BUILD)/netpawl: $(CLI_OBJS)
	$(say) LINK $@
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(CLI_LIBS)

$(BUILD)/netpawl-run: $(RUN_OBJS)
	$(say) LINK $@
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(RUN_LIBS)

$(BUILD)/netpawl-oci-hook: $(HOOK_OBJS)
	$(say) LINK $@
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(RUN_LIBS)

# Static: it is copied to nodes that have none of our libraries.
$(BUILD)/netpawl-cni: $(call objs,$(CNI_DIRS))
	$(say) LINK $@
	$(Q)$(CC) $(LDFLAGS) $(if $(SANFLAGS),,-static-pie) -o $@ $^ -ljansson

$(BUILD)/netpawl-inspect: $(INSPECT_OBJS)
	$(say) LINK $@
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(INSPECT_LIBS)

$(BUILD)/netpawl-decide: $(call objs,$(DECIDE_DIRS))
	$(say) LINK $@
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(DECIDE_LIBS)

$(BUILD)/netpawl-export: $(call objs,$(EXPORT_DIRS))
	$(say) LINK $@
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(EXPORT_LIBS)

$(BUILD)/netpawl-console: $(CONSOLE_OBJS) $(BUILD)/obj/console/page.o
	$(say) LINK $@
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(CONSOLE_LIBS)

# The files of the console's page, inside the program.
PAGE = $(sort $(wildcard user/console/page/*))
$(BUILD)/console_page.c: user/console/embed.py $(PAGE)
	$(say) PAGE $@
	$(Q)mkdir -p $(@D)
	$(Q)$(PYTHON) user/console/embed.py $(PAGE) > $@
$(BUILD)/obj/console/page.o: $(BUILD)/console_page.c
	$(say) CC $<
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

# The first process of a sandbox: static, for it must not need a file of the sandbox, and so without sanitizers.
INIT_SRCS = $(call srcs,init)
$(BUILD)/netpawl-init: $(INIT_SRCS) user/init/caps.h user/init/init.h user/init/landlock.h user/init/mount_check.h user/launch/orders.h user/launch/hidden_mounts.h user/base/fs.h include/gate_limits.h user/vocab/limits.h
	$(say) LINK $@
	$(Q)$(CC) $(CPPFLAGS) $(filter-out -fPIE $(SANFLAGS),$(CFLAGS)) -static -o $@ $(INIT_SRCS)

# The system call filter of sandboxes, made once.
$(BUILD)/sandbox_filter.h: user/filter/main.c
	$(say) FILTER $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -o $(BUILD)/sandbox_filter $< -lseccomp
	$(Q)$(BUILD)/sandbox_filter > $@

$(call objs,launch): | $(BUILD)/sandbox_filter.h

$(BUILD)/obj/llhttp/%.o: $(LLHTTP)/%.c
	$(say) CC $<
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -O2 -g -fPIE $(SANFLAGS) -DLLHTTP_STRICT_MODE=1 -I/usr/share/include/llhttp -c -o $@ $<

$(BUILD)/obj/http/h1.o: CPPFLAGS += -I/usr/share/include/llhttp

$(BUILD)/obj/%.o: user/%.c
	$(say) CC $<
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

# -- the gate: one file per family of hooks, compiled as one into one skeleton -------

# As one, because bpftool 7.1 links no two objects that call the same function of the kernel (bpf_rdonly_cast).
BPF_SRCS = bpf/maps.bpf.c $(filter-out bpf/maps.bpf.c,$(sort $(wildcard bpf/*.bpf.c)))

$(BUILD)/bpf/all.bpf.c: $(BPF_SRCS)
	$(Q)mkdir -p $(@D)
	$(Q)printf '#include "%s"\n' $(notdir $^) > $@

$(BUILD)/bpf/all.bpf.o: $(BUILD)/bpf/all.bpf.c
	$(say) BPF $@
	$(Q)$(CLANG) $(BPF_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/bpf/netpawl.o: $(BUILD)/bpf/all.bpf.o
	$(say) GENOBJ $@
	$(Q)$(BPFTOOL) gen object $@ $^

$(BUILD)/gate.skel.h: $(BUILD)/bpf/netpawl.o
	$(say) SKEL $@
	$(Q)$(BPFTOOL) gen skeleton $< name gate_bpf > $@

$(BUILD)/gate_build.h: $(BUILD)/bpf/netpawl.o
	$(Q)sha256sum < $< | sed 's/ .*/"/; s/^/#define GATE_BUILD "/' > $@

$(call objs,kernel): | $(BUILD)/gate.skel.h $(BUILD)/gate_build.h


# -- tests ----------------------------------------------------------------------

UNIT_TESTS = $(patsubst tests/%.c,$(BUILD)/tests/%,$(sort $(wildcard tests/unit/*/test_*.c)))
FUZZERS = $(patsubst tests/%.c,$(BUILD)/tests/%,$(sort $(wildcard tests/fuzz/fuzz_*.c)))
TEST_LIBS = -lcmocka -lresolv -lncursesw -ltinfo -lbrotlienc $(DAEMON_LIBS) $(INSPECT_LIBS)
PYTEST = $(PYTHON) -m pytest -q -p no:cacheprovider
FUZZ_SECONDS = 60

# q, not r: two folders may have a file of the same name.
$(BUILD)/libnetpawld.a: $(filter-out %/daemon/main.o,$(DAEMON_OBJS))
	$(say) AR $@
	$(Q)rm -f $@ && ar qcs $@ $^
$(BUILD)/libnetpawl.a: $(filter-out %/cli/main.o,$(CLI_OBJS))
	$(say) AR $@
	$(Q)rm -f $@ && ar qcs $@ $^

$(BUILD)/libnetpawl-inspect.a: $(filter-out %/inspect/main.o,$(INSPECT_OBJS))
	$(say) AR $@
	$(Q)rm -f $@ && ar qcs $@ $^

# A test includes the .c under test; the archive of its program gives it everything else. Not optimised: to compile it
# takes longer than to run it.
UNIT_CPPFLAGS = $(filter-out -D_FORTIFY_SOURCE=2,$(CPPFLAGS)) -iquote bpf
define unit_test
	$(say) TEST $<
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(UNIT_CPPFLAGS) $(filter-out -O1 -O2,$(CFLAGS)) -Wno-missing-prototypes -MMD -MP $(LDFLAGS) -o $@ $< $(filter %.a,$^) $(TEST_LIBS)
endef
$(BUILD)/tests/unit/cli/%: tests/unit/cli/%.c $(BUILD)/libnetpawl.a
	$(unit_test)
$(BUILD)/tests/unit/api_client/%: tests/unit/api_client/%.c $(BUILD)/libnetpawl.a
	$(unit_test)
$(BUILD)/tests/unit/exporter/%: tests/unit/exporter/%.c $(BUILD)/libnetpawl.a
	$(unit_test)
$(BUILD)/tests/unit/hook/%: tests/unit/hook/%.c $(BUILD)/libnetpawl.a
	$(unit_test)
$(BUILD)/tests/unit/console/%: tests/unit/console/%.c $(BUILD)/libnetpawl.a
	$(unit_test)
# Found beside the program that starts a sandbox.
$(BUILD)/tests/unit/launch/netpawl-init: $(BUILD)/netpawl-init
	$(Q)mkdir -p $(@D) && ln -sf ../../../netpawl-init $@
$(BUILD)/tests/unit/launch/test_launch: | $(BUILD)/tests/unit/launch/netpawl-init
$(BUILD)/tests/unit/launch/%: tests/unit/launch/%.c $(BUILD)/libnetpawl.a
	$(unit_test)
$(BUILD)/tests/unit/inspect/% $(BUILD)/tests/unit/http/%: CPPFLAGS += -I/usr/share/include/llhttp
# A whole worker, with the kernel, the clock and TLS of the test's making.
comma = ,
WORKER_SEAMS = getsockopt connect recv close epoll_wait loop_now_ns loop_every route_may channel_tls channel_speaks_h2 \
	       roots_new roots_free origins_new origins_free origin_ssl ca_import ca_free ca_server
WORKER_WRAPS = $(addprefix -Wl$(comma)--wrap=,$(WORKER_SEAMS))
$(BUILD)/tests/unit/inspect/test_worker_%: LDFLAGS += $(WORKER_WRAPS)
$(BUILD)/tests/unit/inspect/test_worker_%: CFLAGS += -Wno-unused-function
$(BUILD)/tests/unit/inspect/%: tests/unit/inspect/%.c $(BUILD)/libnetpawl-inspect.a
	$(unit_test)
$(BUILD)/tests/unit/http/%: tests/unit/http/%.c $(BUILD)/libnetpawl-inspect.a
	$(unit_test)
$(BUILD)/tests/unit/net/%: tests/unit/net/%.c $(BUILD)/libnetpawl-inspect.a
	$(unit_test)
$(BUILD)/tests/unit/resolver/%: tests/unit/resolver/%.c $(BUILD)/libnetpawl-inspect.a
	$(unit_test)
$(BUILD)/tests/unit/tls/%: tests/unit/tls/%.c $(BUILD)/libnetpawl-inspect.a
	$(unit_test)
$(BUILD)/tests/unit/dns/%: tests/unit/dns/%.c $(BUILD)/libnetpawl-inspect.a
	$(unit_test)
$(BUILD)/tests/unit/wire/%: tests/unit/wire/%.c $(BUILD)/libnetpawl-inspect.a
	$(unit_test)
$(BUILD)/tests/unit/secrets/%: tests/unit/secrets/%.c $(BUILD)/libnetpawl-inspect.a
	$(unit_test)
$(BUILD)/tests/unit/%: tests/unit/%.c $(BUILD)/libnetpawld.a
	$(unit_test)

$(BUILD)/tests/fuzz/%: tests/fuzz/%.c $(wildcard tests/fuzz/*.h) $(BUILD)/libnetpawld.a $(BUILD)/libnetpawl-inspect.a
	$(say) FUZZ $<
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(CPPFLAGS) -I/usr/share/include/llhttp -iquote bpf -std=gnu11 -O1 -g -Wall -Werror -Wno-unused-function \
		-fsanitize=fuzzer,address,undefined -o $@ $< $(filter %.a,$^) $(DAEMON_LIBS) $(INSPECT_LIBS)

$(BUILD)/tests/fuzz/fuzz_ask_screen: $(BUILD)/libnetpawl.a # question_write()

# A whole worker: what it is made of has to tell the fuzzer where it went, too.
FUZZ_CFLAGS = -std=gnu11 -O1 -g -Wall -Werror -fno-sanitize-recover=undefined -Wno-unknown-warning-option
FUZZ_OBJS = $(patsubst $(BUILD)/obj/%,$(BUILD)/fuzz/obj/%,$(filter-out %/inspect/main.o,$(INSPECT_OBJS)))
$(BUILD)/fuzz/obj/llhttp/%.o: $(LLHTTP)/%.c
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(FUZZ_CFLAGS) -fsanitize=fuzzer-no-link,address,undefined -DLLHTTP_STRICT_MODE=1 \
		-I/usr/share/include/llhttp -c -o $@ $<
$(BUILD)/fuzz/obj/%.o: user/%.c
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(CPPFLAGS) -I/usr/share/include/llhttp $(FUZZ_CFLAGS) \
		-fsanitize=fuzzer-no-link,address,undefined -MMD -MP -c -o $@ $<
$(BUILD)/libnetpawl-fuzz.a: $(FUZZ_OBJS)
	$(say) AR $@
	$(Q)rm -f $@ && ar qcs $@ $^
$(BUILD)/tests/fuzz/fuzz_exchange: tests/fuzz/fuzz_exchange.c $(wildcard tests/fuzz/*.h) $(BUILD)/libnetpawl-fuzz.a
	$(say) FUZZ $<
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(CPPFLAGS) -I/usr/share/include/llhttp $(FUZZ_CFLAGS) -fsanitize=fuzzer,address,undefined \
		$(WORKER_WRAPS) -o $@ $< $(filter %.a,$^) $(INSPECT_LIBS)

# The daemon with places to die at on demand, in these files: see user/base/failpoint.h.
FAIL_SRCS := $(shell grep -l '"base/failpoint.h"' user/*/*.c)
FAIL_OBJS = $(foreach o,$(DAEMON_OBJS),$(if $(filter $(o:$(BUILD)/obj/%.o=user/%.c),$(FAIL_SRCS)),$(o:$(BUILD)/obj/%=$(BUILD)/test/obj/%),$(o)))
$(BUILD)/test/obj/%.o: user/%.c
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -DNP_FAILPOINTS $(CFLAGS) -MMD -MP -c -o $@ $<
$(filter $(BUILD)/test/obj/kernel/%,$(FAIL_OBJS)): | $(BUILD)/gate.skel.h $(BUILD)/gate_build.h
$(BUILD)/test/netpawld: $(FAIL_OBJS)
	$(say) LINK $@
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(DAEMON_LIBS)

test-build: all $(BUILD)/test/netpawld $(UNIT_TESTS)
RUN_TESTS = NETPAWL_BUILD=$(abspath $(BUILD)) $(PYTHON) tests/run.py
test-unit: $(UNIT_TESTS)
	$(Q)$(RUN_TESTS) -- $(UNIT_TESTS)
test-e2e: all $(BUILD)/test/netpawld
	$(Q)$(RUN_TESTS) $(filter-out tests/%,$(T)) -- $(or $(filter tests/%,$(T)),tests/layers tests/e2e tests/attack)

test: deps
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) test-build
	$(Q)$(RUN_TESTS) $(T) -- $(UNIT_TESTS) tests/layers tests/e2e tests/attack

# The files that have tests with the mark "smoke".
SMOKE = tests/layers/test_layers.py tests/e2e/test_modes.py tests/e2e/test_escalation.py tests/e2e/test_inspect.py tests/e2e/test_policy_cli.py
check: deps
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) test-build
	$(Q)$(RUN_TESTS) -m smoke -- $(UNIT_TESTS) $(SMOKE)

# An inspector has no file system to write its counts to: of inspect/ and dns/ only what unit tests run is counted. Nor is what
# a daemon did that was killed.
coverage:
	$(Q)$(MAKE) --no-print-directory deps DEPS="$(DEPS) gcovr"
	$(Q)$(MAKE) --no-print-directory COVERAGE=1 -j$(shell nproc) test-build
	$(Q)find build/coverage -name '*.gcda' -delete
	$(Q)chmod -R a+rwX build/coverage/obj # programs of other users count, too
	$(Q)GCOV_ERROR_FILE=/dev/null NETPAWL_BUILD=$(abspath build/coverage) $(PYTHON) tests/run.py $(T) -- \
		$(UNIT_TESTS:$(BUILD)/%=build/coverage/%) tests/e2e tests/attack || \
		echo "some tests failed: the numbers are those of a broken run"
	$(Q)gcovr --root . --filter user/ --gcov-ignore-parse-errors build/coverage -o build/coverage/lines.txt --print-summary
	$(Q)echo "by file: build/coverage/lines.txt"

help:
	$(Q)sed -n '/^# make /s/^# //p;/^# V=1/s/^# //p' Makefile

# Some packages of Node bring npm along, and conflict with Debian's.
NPM = $(shell command -v npm >/dev/null || echo npm)

# Real clients and servers of many kinds, from inside a sandbox; they take a while to install.
CLIENT_DEPS = awscli wget python3-pip python3-requests python3-aiohttp python3-httpx nodejs golang-go $(NPM) skopeo docker-registry python3-grpcio \
	      default-jdk-headless git fcgiwrap nginx-light nghttp2-client nghttp2-server openssl procps postgresql chromium firefox-esr libnss3-tools
test-clients:
	$(Q)$(MAKE) --no-print-directory deps DEPS="$(DEPS) $(CLIENT_DEPS)"
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) all
	$(Q)NETPAWL_BUILD=$(abspath $(BUILD)) $(PYTEST) $(T) tests/clients

# What other systems make of metrics and exports.
MONITORING_DEPS = prometheus nodejs $(NPM)
test-monitoring:
	$(Q)$(MAKE) --no-print-directory deps DEPS="$(DEPS) $(MONITORING_DEPS)"
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) all
	$(Q)NETPAWL_BUILD=$(abspath $(BUILD)) $(PYTEST) $(T) tests/monitoring

# The console's page in Chromium. The driver comes from npm, pinned by its hash, and into build/ alone.
test-browser:
	$(Q)$(MAKE) --no-print-directory deps DEPS="$(DEPS) chromium fonts-dejavu-core $(NPM)"
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) all
	$(Q)mkdir -p build/browser && cp tests/browser/package.json tests/browser/package-lock.json build/browser/
	$(Q)cd build/browser && npm ci --no-audit --no-fund --silent
	$(Q)NETPAWL_BUILD=$(abspath $(BUILD)) $(PYTEST) $(T) tests/browser

# Ten minutes of 50 events a second, and a history of 100,000: what the page holds in memory, when it paints.
test-browser-soak:
	$(Q)$(MAKE) --no-print-directory test-browser T="-k used_opens"
	$(Q)NETPAWL_BUILD=$(abspath $(BUILD)) $(PYTHON) tests/browser/measure.py paint
	$(Q)NETPAWL_BUILD=$(abspath $(BUILD)) $(PYTHON) tests/browser/measure.py soak

# Real engines. A root file system of Debian's packages is made once, and kept in /var/cache/netpawl-test.
CONTAINER_DEPS = podman runc docker.io docker-compose busybox-static debootstrap dpkg-dev containernetworking-plugins
test-containers:
	$(Q)$(MAKE) --no-print-directory deps DEPS="$(DEPS) $(CONTAINER_DEPS)"
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) all
	$(Q)NETPAWL_BUILD=$(abspath $(BUILD)) $(PYTEST) $(T) tests/containers

# The same tests once more, with sandboxes that live elsewhere: in networks of their own; and those about what the gate promises to every
# sandbox, in containers that are adopted, of no engine and of both. Their files start an engine each: not more than two at once.
ADOPTED = container podman docker
INSIDE = $(addprefix tests/attack/test_,after_ack.py channels.py containers.py control.py cut.py dns_tunnels.py egress.py foreign_source.py \
	   identity.py inbound.py local.py loopback.py many.py metadata.py ports.py unixsock.py) \
	 $(addprefix tests/e2e/test_,dns_steer.py escalation.py modes.py)
test-private: all $(BUILD)/test/netpawld
	$(Q)NETPAWL_TEST_NETWORK=private $(RUN_TESTS) $(filter-out tests/%,$(T)) -- $(or $(filter tests/%,$(T)),tests/e2e tests/attack)
test-adopted:
	$(Q)$(MAKE) --no-print-directory deps DEPS="$(DEPS) $(CONTAINER_DEPS)"
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) all $(BUILD)/test/netpawld
	$(Q)for kind in $(ADOPTED); do echo "containers of $$kind" && NETPAWL_TEST_ADOPTED=$$kind $(RUN_TESTS) --jobs 2 $(filter-out tests/%,$(T)) -- \
		$(or $(filter tests/%,$(T)),$(INSIDE)) || exit 1; done

# Commits of older versions of the ABI: the oldest that can be taken over from, and the one before this. Built once; without the
# history there is nothing to upgrade from.
OLD_ABIS = 4 7
OLD_COMMIT_4 = 3d5402fa96d6ebfa64a8988a5942a0352c27e2ec
OLD_COMMIT_7 = 28a5164a1220584b70cc6b67ca28419199627c50
OLD_BUILDS = $(OLD_ABIS:%=build/abi%/build/netpawld)
OLD_THERE = $(foreach abi,$(OLD_ABIS),git cat-file -e $(OLD_COMMIT_$(abi)) 2>/dev/null &&) true
$(OLD_BUILDS): build/abi%/build/netpawld:
	$(say) OLD build/abi$*
	$(Q)rm -rf build/abi$* && mkdir -p build/abi$*
	$(Q)git archive $(OLD_COMMIT_$*) | tar -x -C build/abi$*
	$(Q)env -u MAKEFLAGS -u MAKELEVEL $(MAKE) --no-print-directory -C build/abi$* -j$(shell nproc) BUILD=build all
# These sources as a build of the next ABI version, for sandboxes that older ones do not know.
NEXT_BUILD = build/next
# bubblewrap: the launcher of ABI version 4 starts sandboxes by it.
test-upgrade:
	$(Q)$(MAKE) --no-print-directory deps DEPS="$(DEPS) bubblewrap"
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) all $(BUILD)/test/netpawld
	$(Q)$(PYTHON) tests/upgrade/next_build.py $(NEXT_BUILD)
	$(Q)env -u MAKEFLAGS -u MAKELEVEL $(MAKE) --no-print-directory -C $(NEXT_BUILD) -j$(shell nproc) BUILD=build all
	$(Q)if ! { $(OLD_THERE); }; then \
		echo "skipped: the history of this repository does not go back to what there is to upgrade from"; \
	else $(MAKE) --no-print-directory $(OLD_BUILDS) && \
		NETPAWL_BUILD=$(abspath $(BUILD)) NETPAWL_NEXT_BUILD=$(abspath $(NEXT_BUILD)/build) $(PYTEST) $(T) tests/upgrade; fi

# Some hundreds of attempts with a seed that stays are in make test; this takes another one each time, and prints it.
DIFF_POLICIES = 1000
DIFF_SEED = $(shell date +%s)
differential: deps
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) all
	$(Q)seed=$(DIFF_SEED); echo "DIFF_SEED=$$seed"; NETPAWL_BUILD=$(abspath $(BUILD)) NETPAWL_DIFF_POLICIES=$(DIFF_POLICIES) \
		NETPAWL_DIFF_SEED=$$seed NETPAWL_TEST_TIMEOUT=14400 $(PYTEST) $(T) -s tests/e2e/test_differential.py

# Some hundreds with a seed that stays are in make test.
MUTANTS = 20000
MUTANTS_SEED = $(shell date +%s)
mutate:
	$(Q)$(MAKE) --no-print-directory deps DEPS="$(DEPS) nginx-light"
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) all
	$(Q)seed=$(MUTANTS_SEED); echo "MUTANTS_SEED=$$seed"; NETPAWL_BUILD=$(abspath $(BUILD)) NETPAWL_MUTANTS=$(MUTANTS) \
		NETPAWL_MUTANTS_SEED=$$seed NETPAWL_TEST_TIMEOUT=14400 $(PYTEST) $(T) -s tests/attack/test_mutants.py

SOAK_ROUNDS = 300
soak: deps
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) all
	$(Q)NETPAWL_BUILD=$(abspath $(BUILD)) NETPAWL_SOAK=$(SOAK_ROUNDS) NETPAWL_TEST_TIMEOUT=14400 \
		$(PYTEST) $(T) tests/e2e/test_soak.py

# A target that is found to fail leaves its input in the folder that make was called in.
FUZZ_RUNS = $(patsubst $(BUILD)/tests/fuzz/%,fuzz-run-%,$(FUZZERS))
fuzz:
	$(Q)$(MAKE) --no-print-directory deps DEPS="$(DEPS) libclang-rt-14-dev"
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) $(FUZZ_RUNS)
$(FUZZ_RUNS): fuzz-run-%: $(BUILD)/tests/fuzz/%
	$(say) RUN $<
	$(Q)mkdir -p $<.corpus
	$(Q)$< -max_total_time=$(FUZZ_SECONDS) $(FUZZ_FLAGS) -timeout=10 -print_final_stats=1 $<.corpus $(wildcard tests/fuzz/corpus/$*) >$<.log 2>&1 || \
		{ tail -40 $<.log; exit 1; }

# What make test does not do, in about a quarter of an hour on two cores. The seed of the fuzzers stays, so that the same
# tree gives the same answer; make fuzz takes another one each time.
prove:
	$(Q)$(MAKE) --no-print-directory lint
	$(Q)$(MAKE) --no-print-directory SAN=1 -j$(shell nproc) test-unit
	$(Q)$(MAKE) --no-print-directory fuzz FUZZ_SECONDS=20 FUZZ_FLAGS="-seed=1 -runs=100000"

bench: all
	$(Q)NETPAWL_BUILD=$(abspath $(BUILD)) $(PYTHON) tests/bench/bench.py $(if $(QUICK),--quick) $(T)

# Static: it also runs in sandboxes of a machine that has hardly any files.
$(BUILD)/tests/vm/check: tests/vm/check.c
	$(say) CC $<
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -D_GNU_SOURCE $(filter-out -fPIE -fsanitize=%,$(CFLAGS)) -static -o $@ $<

VM_DEPS = qemu-system-x86 busybox-static cpio e2fsprogs kmod
KERNELS = 6.1 6.12 6.12-nolsm
vm:
	$(Q)$(MAKE) --no-print-directory deps DEPS="$(DEPS) $(VM_DEPS)"
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) all $(BUILD)/tests/vm/check
	$(Q)! { $(OLD_THERE); } || $(MAKE) --no-print-directory build/abi4/build/netpawld
	$(Q)NETPAWL_BUILD=$(abspath $(BUILD)) NETPAWL_OLD_BUILD=$(abspath build/abi4/build) $(PYTHON) tests/vm/run.py $(KERNELS)

run: deps
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) all
	$(Q)NETPAWL_BUILD=$(abspath $(BUILD)) CONSOLE=$(CONSOLE) $(PYTHON) examples/demo.py $(AGENT)

LINT_SRCS = $(sort $(wildcard user/*/*.c))
LINT_HDRS = $(filter-out user/vocab/limits.h,$(wildcard user/*/*.h)) $(filter-out include/gate_limits.h include/reason.h,$(wildcard include/*.h))
lint:
	$(Q)$(MAKE) --no-print-directory deps DEPS="$(DEPS) clang-format clang-tidy cppcheck"
	$(Q)clang-format --dry-run -Werror $(LINT_SRCS) $(LINT_HDRS) $(wildcard bpf/*.[ch])
	$(Q)cppcheck -q -j $(shell nproc) --error-exitcode=1 --enable=warning,portability,performance --inline-suppr \
		--suppress=missingIncludeSystem --std=c11 -D_GNU_SOURCE -DNETPAWL_VERSION='""' \
		'-DLIBBPF_OPTS(t,n,...)=struct t n = { __VA_ARGS__ }' '-DLIST_FOREACH(v,h,f)=while (v = h)' '-DTAILQ_FOREACH(v,h,f)=while (v = h)' '-Djson_array_foreach(a,i,v)=while (i = 0, v = a)' '-Djson_object_foreach(o,k,v)=while (k = "", v = o)' \
		-Iuser $(LINT_SRCS)
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) $(patsubst user/%.c,$(BUILD)/tidy/%.ok,$(LINT_SRCS))

# One mark per file that was found clean, so that only what has changed is looked at again.
$(BUILD)/tidy/%.ok: user/%.c $(wildcard user/*/*.h include/*.h) .clang-tidy | $(BUILD)/gate.skel.h $(BUILD)/gate_build.h
	$(say) TIDY $<
	$(Q)clang-tidy --quiet --warnings-as-errors='*' $< -- -std=gnu11 $(CPPFLAGS) -I/usr/share/include/llhttp 2>/dev/null
	$(Q)mkdir -p $(@D) && touch $@

# -- installation ------------------------------------------------------------------

DEPS = gcc make clang llvm libbpf-dev bpftool libelf-dev zlib1g-dev libmicrohttpd-dev libjansson-dev libsqlite3-dev libpsl-dev libnftables-dev nftables \
       libyaml-dev libidn2-dev nettle-dev libbrotli-dev libzstd-dev libssl-dev libnghttp2-dev libc-ares-dev node-llhttp libseccomp-dev \
       libcmocka-dev libc6-dev python3 python3-pytest iproute2 util-linux procps curl openssl bind9-dnsutils scdoc \
       python3-dnspython iodine dns2tcp tinyproxy musl-tools openssh-client python3-asyncssh python3-websockets python3-h2 python3-yaml python3-jsonschema zsh fish \
       nodejs python3-requests default-jre-headless systemd libncurses-dev ncurses-term tmux brotli zstd

deps:
	$(Q)missing=; for p in $(DEPS); do \
		dpkg-query -W -f='$${db:Status-Abbrev}' $$p 2>/dev/null | grep -q '^ii' || missing="$$missing $$p"; done; \
	if [ -n "$$missing" ]; then echo "installing:$$missing"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; fi

MAN_PAGES = $(patsubst man/%.scd,$(BUILD)/man/%,$(sort $(wildcard man/*.scd)))
$(BUILD)/man/%: man/%.scd
	$(say) MAN $@
	$(Q)mkdir -p $(@D)
	$(Q)scdoc < $< > $@
man: $(MAN_PAGES)

# What the command writes about itself, from its own tables.
$(BUILD)/policy.schema.json: $(BUILD)/netpawl
	$(Q)$< policy schema > $@
$(BUILD)/lists.yaml: $(BUILD)/netpawl
	$(Q)$< policy lists > $@
$(BUILD)/completion/%: $(BUILD)/netpawl
	$(Q)mkdir -p $(@D) && $< completion $* > $@

install: all man $(BUILD)/policy.schema.json $(BUILD)/lists.yaml $(addprefix $(BUILD)/completion/,bash zsh fish)
	install -d $(DESTDIR)$(PREFIX)/sbin $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/netpawl/policies \
		$(DESTDIR)$(PREFIX)/lib/systemd/system $(addprefix $(DESTDIR)$(PREFIX)/share/man/man,1 5 8)
	install -m 0755 $(BUILD)/netpawld $(BUILD)/netpawl-run $(BUILD)/netpawl-inspect $(BUILD)/netpawl-decide $(BUILD)/netpawl-export $(BUILD)/netpawl-oci-hook $(BUILD)/netpawl-cni $(DESTDIR)$(PREFIX)/sbin
	install -m 0755 $(BUILD)/netpawl $(BUILD)/netpawl-console $(BUILD)/netpawl-init $(DESTDIR)$(PREFIX)/bin
	install -m 0644 policies/*.yaml policies/*.case $(DESTDIR)$(PREFIX)/share/netpawl/policies
	install -m 0644 $(BUILD)/policy.schema.json $(BUILD)/lists.yaml $(DESTDIR)$(PREFIX)/share/netpawl
	install -D -m 0644 $(BUILD)/completion/bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/netpawl
	install -D -m 0644 $(BUILD)/completion/zsh $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_netpawl
	install -D -m 0644 $(BUILD)/completion/fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/netpawl.fish
	for s in 1 5 8; do install -m 0644 $(BUILD)/man/*.$$s $(DESTDIR)$(PREFIX)/share/man/man$$s || exit 1; done
	install -d $(DESTDIR)$(PREFIX)/share/containers/oci/hooks.d
	sed 's|@PREFIX@|$(PREFIX)|' netpawl-hook.json.in > $(DESTDIR)$(PREFIX)/share/containers/oci/hooks.d/netpawl.json
	sed 's|@PREFIX@|$(PREFIX)|' netpawl-trust.json.in > $(DESTDIR)$(PREFIX)/share/netpawl/netpawl-trust.json
	sed 's|@PREFIX@|$(PREFIX)|' netpawld.service.in > $(DESTDIR)$(PREFIX)/lib/systemd/system/netpawld.service

# What is the administrator's stays: /etc/netpawl, the state directory, and a gate that is in the kernel (netpawld --uninstall).
uninstall:
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/sbin/,netpawld netpawl-run netpawl-inspect netpawl-decide netpawl-export netpawl-oci-hook netpawl-cni) $(addprefix $(DESTDIR)$(PREFIX)/bin/,netpawl netpawl-console netpawl-init) \
		$(addprefix $(DESTDIR)$(PREFIX)/share/netpawl/,$(wildcard policies/*.yaml policies/*.case)) \
		$(foreach s,1 5 8,$(addprefix $(DESTDIR)$(PREFIX)/share/man/man$s/,$(notdir $(filter %.$s,$(MAN_PAGES))))) \
		$(addprefix $(DESTDIR)$(PREFIX)/share/,netpawl/policy.schema.json netpawl/lists.yaml netpawl/netpawl-trust.json bash-completion/completions/netpawl \
		zsh/site-functions/_netpawl fish/vendor_completions.d/netpawl.fish containers/oci/hooks.d/netpawl.json) $(DESTDIR)$(PREFIX)/lib/systemd/system/netpawld.service
	$(Q)rmdir $(DESTDIR)$(PREFIX)/share/netpawl/policies $(DESTDIR)$(PREFIX)/share/netpawl 2>/dev/null || true

clean:
	rm -rf build

.PHONY: test test-browser test-browser-soak test-build test-unit test-e2e check help coverage test-clients test-monitoring test-private test-adopted test-containers test-upgrade differential mutate soak fuzz $(FUZZ_RUNS) prove bench vm run lint deps man install uninstall clean

-include $(patsubst %.o,%.d,$(DAEMON_OBJS) $(CLI_OBJS) $(RUN_OBJS) $(HOOK_OBJS) $(CONSOLE_OBJS) $(call objs,$(CNI_DIRS)) $(call objs,$(DECIDE_DIRS)) $(call objs,$(EXPORT_DIRS)) $(INSPECT_OBJS) $(FAIL_OBJS) $(FUZZ_OBJS) $(BUILD)/bpf/all.bpf.o)
-include $(addsuffix .d,$(UNIT_TESTS))
