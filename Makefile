# SPDX-License-Identifier: Apache-2.0
#
# make            build everything into build/ (SAN=1: with ASan and UBSan, into build/san/)
# make run        show the three modes on a small internet of its own; AGENT="cmd ..." runs yours
# make test       build and run every test
# make bench      measure, print ratios, write JSON into build/bench/
# make deps       install what is missing, with apt-get
# make install    PREFIX=/usr/local DESTDIR=
# V=1             show the commands

MAKEFLAGS += --no-builtin-rules
.SUFFIXES:
.DELETE_ON_ERROR:

PREFIX ?= /usr/local
CC = gcc
CLANG = clang
BPFTOOL := $(or $(shell command -v bpftool 2>/dev/null),/usr/sbin/bpftool)
PYTHON = /usr/bin/python3
VERSION := 0.1.0

ifeq ($(V),1)
Q =
say = @true
else
Q = @
say = @printf '  %-8s %s\n'
endif

ifeq ($(SAN),1)
BUILD = build/san
SANFLAGS = -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
else
BUILD = build
SANFLAGS =
endif

# -iquote, not -I: include/limits.h must not hide the C library's.
CPPFLAGS = -D_GNU_SOURCE -DNETPAWL_VERSION='"$(VERSION)"' -iquote include -iquote user -iquote $(BUILD)
CFLAGS = -std=gnu11 -O2 -g -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	 -Wpointer-arith -Wformat=2 -Wvla -fstack-protector-strong -fPIE $(SANFLAGS)
ifneq ($(SAN),1)
CPPFLAGS += -D_FORTIFY_SOURCE=2
endif
LDFLAGS = -pie -Wl,-z,relro,-z,now $(SANFLAGS)
BPF_CFLAGS = -target bpf -mcpu=v3 -O2 -g -Wall -Wextra -Werror -Wno-missing-declarations \
	     -I/usr/include/$(shell gcc -dumpmachine) -iquote include -iquote vmlinux -iquote bpf

DAEMON_LIBS = -lbpf -lelf -lz -lmicrohttpd -ljansson -lsqlite3 -lyaml
CLI_LIBS = -ljansson -lseccomp

srcs = $(sort $(wildcard $(addsuffix /*.c,$(addprefix user/,$(1)))))
objs = $(patsubst user/%.c,$(BUILD)/obj/%.o,$(call srcs,$(1)))

SHARED_OBJS = $(call objs,base)
DAEMON_OBJS = $(SHARED_OBJS) $(call objs,loop policy session events kernel control daemon)
CLI_OBJS = $(SHARED_OBJS) $(call objs,sandbox cli)

all: $(BUILD)/netpawld $(BUILD)/netpawl
.PHONY: all

$(BUILD)/netpawld: $(DAEMON_OBJS)
	$(say) LINK $@
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(DAEMON_LIBS)

$(BUILD)/netpawl: $(CLI_OBJS)
	$(say) LINK $@
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(CLI_LIBS)

$(BUILD)/obj/%.o: user/%.c
	$(say) CC $<
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

# -- the gate: one object per family of hooks, linked into one skeleton -------

# maps.bpf.c first: bpftool 7.1 leaves the offset of a map at 0 when it meets the extern before the definition.
BPF_SRCS = bpf/maps.bpf.c $(filter-out bpf/maps.bpf.c,$(sort $(wildcard bpf/*.bpf.c)))
BPF_OBJS = $(patsubst bpf/%.bpf.c,$(BUILD)/bpf/%.bpf.o,$(BPF_SRCS))

$(BUILD)/bpf/%.bpf.o: bpf/%.bpf.c
	$(say) BPF $<
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/bpf/netpawl.o: $(BPF_OBJS)
	$(say) GENOBJ $@
	$(Q)$(BPFTOOL) gen object $@ $^

$(BUILD)/gate.skel.h: $(BUILD)/bpf/netpawl.o
	$(say) SKEL $@
	$(Q)$(BPFTOOL) gen skeleton $< name gate_bpf > $@

$(call objs,kernel): | $(BUILD)/gate.skel.h

-include $(patsubst %.o,%.d,$(DAEMON_OBJS) $(CLI_OBJS) $(BPF_OBJS))
