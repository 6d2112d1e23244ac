# Weir. `make` builds build/weir and the libraries; `make demo` and `make test` also install what is missing.

CC         ?= gcc
OBJCOPY    ?= objcopy
PKG_CONFIG ?= pkg-config
INSTALL    ?= install
BUILD      ?= build
CFLAGS     ?= -O2 -g
SANITIZE   ?=
# A warning stops who works on Weir, not who builds it from an archive with a compiler that we do not know.
WERROR     ?= $(if $(wildcard .git),-Werror)

WARNINGS = -Wall -Wextra -Wshadow -Wstrict-prototypes $(WERROR)
# Flags of whoever builds it come last, and win. No object says where it was built.
override CPPFLAGS := -D_GNU_SOURCE -I. -Iinclude $(CPPFLAGS)
override CFLAGS   := -std=c11 -fPIC -fvisibility=hidden -pthread -ffile-prefix-map=$(CURDIR)=. $(WARNINGS) \
                     $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all) $(CFLAGS)
LIBS = -lhiredis -lev -ljansson -lglib-2.0 -ldl -lm
SERVE_LIBS = -lmicrohttpd
TOP_LIBS = -lncursesw

# A step is one short line, as "  CC  core/clock.c"; make V=1 prints the commands.
step = @$(if $(V),,$(if $(findstring s,$(firstword -$(MAKEFLAGS))),,printf '  %-4s %s\n' '$1' '$(or $2,$@)';))$(if $(V),set -x;)

# The sources of a layer: those of its folder, and of the folders in it.
sources     = $(sort $(foreach layer,$1,$(wildcard $(layer)/*.$2 $(layer)/*/*.$2)))
LIB_SOURCES = $(call sources,core throttle queue producer worker,c)
CLI_SOURCES = $(call sources,cli serve view,c)
LUA         = $(call sources,core throttle queue,lua)
EMBED       = core/script/embed.sh $(wildcard core/script/*.awk)
HELP        = $(sort $(wildcard cli/help/*.txt))

LIB_OBJECTS = $(LIB_SOURCES:%.c=$(BUILD)/%.o) $(BUILD)/gen/scripts.o
CLI_OBJECTS = $(CLI_SOURCES:%.c=$(BUILD)/%.o) $(BUILD)/gen/help.o $(BUILD)/gen/assets.o

all: $(BUILD)/weir $(BUILD)/libweir.a $(BUILD)/libweir.so examples

$(BUILD)/weir: $(CLI_OBJECTS) $(LIB_OBJECTS)
	$(call step,LINK)$(CC) $(CFLAGS) $(LDFLAGS) -rdynamic -o $@ $^ $(LIBS) $(SERVE_LIBS) $(TOP_LIBS)

# One object with only the names of weir.h left visible: a program that links the archive keeps its own names.
$(BUILD)/libweir.a: $(LIB_OBJECTS)
	$(call step,AR)$(CC) -nostdlib -r -o $(BUILD)/libweir.o $^ && $(OBJCOPY) --localize-hidden $(BUILD)/libweir.o && \
	  rm -f $@ && $(AR) rcsD $@ $(BUILD)/libweir.o

$(BUILD)/libweir.so.0: include/weir.map $(LIB_OBJECTS)
	$(call step,LINK)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,$(@F) -Wl,-z,defs -Wl,--version-script=$< -o $@ $(LIB_OBJECTS) $(LIBS)

$(BUILD)/libweir.so: $(BUILD)/libweir.so.0
	@ln -sf $(<F) $@

$(BUILD)/gen/scripts.c: $(EMBED) $(LUA)
	@mkdir -p $(@D)
	$(call step,GEN)core/script/embed.sh $(LUA) > $@

$(BUILD)/gen/help.c: cli/help.sh $(HELP)
	@mkdir -p $(@D)
	$(call step,GEN)cli/help.sh $(HELP) > $@

PAGE_ASSETS = $(sort $(wildcard serve/page/*.css serve/page/*.js serve/page/*.svg))

$(BUILD)/gen/assets.c: serve/page/assets.sh $(PAGE_ASSETS)
	@mkdir -p $(@D)
	$(call step,GEN)serve/page/assets.sh $(PAGE_ASSETS) > $@

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(call step,CC,$<)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/core/zone.o $(BUILD)/throttle/key.o: override CPPFLAGS += $(shell $(PKG_CONFIG) --cflags glib-2.0)

$(BUILD)/gen/%.o: $(BUILD)/gen/%.c
	$(call step,CC,$<)$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

# ---- Examples: compiled against weir.h alone

EXAMPLE_PROGRAMS = $(patsubst examples/%.c,$(BUILD)/examples/%,$(filter-out %_handler.c,$(wildcard examples/*.c)))
EXAMPLE_HANDLERS = $(patsubst examples/%.c,$(BUILD)/examples/%.so,$(wildcard examples/*_handler.c))

examples: $(EXAMPLE_PROGRAMS) $(EXAMPLE_HANDLERS)

$(BUILD)/examples/%.so: examples/%.c include/weir.h
	@mkdir -p $(@D)
	$(call step,CC,$<)$(CC) -Iinclude -std=c11 -O2 -g $(WARNINGS) -fPIC -shared -pthread -o $@ $< -ljansson

$(BUILD)/examples/%: examples/%.c include/weir.h $(BUILD)/libweir.a
	@mkdir -p $(@D)
	$(call step,CC,$<)$(CC) -Iinclude -std=c11 -O2 -g $(WARNINGS) -pthread $(if $(SANITIZE),-fsanitize=$(SANITIZE)) -o $@ $< $(BUILD)/libweir.a $(LIBS)

# ---- Tests

# The longest first, so that none of them is left for the end. Sanitizers see nothing in the unsanitized that they do not see in others: those read
# sources, run little but scripts, or measure times.
LONG_TESTS    = lanes throttle crash transcripts sessions requests link cluster failures far worker_redis command worker_starts alone doctor_keys sentinel \
                top_terminal bulk wide
UNSANITIZED   = layers lanes far worker_starts duty standing scale
ALL_TESTS     = $(filter $(patsubst tests/test_%.c,%,$(wildcard tests/test_*.c)),$(LONG_TESTS)) \
                $(filter-out $(LONG_TESTS),$(patsubst tests/test_%.c,%,$(wildcard tests/test_*.c)))
TEST_PROGRAMS = $(patsubst %,$(BUILD)/tests/test_%,$(filter-out $(if $(SANITIZE),$(UNSANITIZED)),$(ALL_TESTS)))
TEST_HELPERS  = $(patsubst %.c,$(BUILD)/%.o,$(filter-out tests/test_%,$(wildcard tests/*.c)))

# Without optimization, which is most of the time that compiling them takes: what they call is built as ever.
$(BUILD)/tests/test_%.o: private override CFLAGS += $(if $(SANITIZE),,-O0)

# Loaded into programs that tests start (LD_PRELOAD), such as redis-server; so never sanitized.
TEST_PRELOADS = $(patsubst %.c,$(BUILD)/%.so,$(wildcard tests/preload/*.c))

$(BUILD)/tests/preload/%.so: tests/preload/%.c
	@mkdir -p $(@D)
	$(call step,CC,$<)$(CC) -D_GNU_SOURCE -std=c11 -O2 -g $(WARNINGS) -fPIC -fvisibility=hidden -shared -o $@ $<

$(BUILD)/tests/test_%: $(BUILD)/tests/test_%.o $(TEST_HELPERS) $(LIB_OBJECTS) | $(TEST_PRELOADS)
	$(call step,LINK)$(CC) $(CFLAGS) $(LDFLAGS) -rdynamic -o $@ $^ $(LIBS) -lcmocka

# What commands share, without the commands.
$(BUILD)/tests/test_table: $(patsubst %,$(BUILD)/%.o,cli/document/table cli/print/color cli/print/terminal view/format view/hidden view/output view/pause view/stream view/text view/waits view/write)

# The reader of weir.conf.
$(BUILD)/tests/test_config: $(BUILD)/cli/config.o

# The pages, without the server.
$(BUILD)/tests/test_page $(BUILD)/tests/test_report $(BUILD)/tests/test_forecast: $(patsubst %.c,$(BUILD)/%.o,$(wildcard serve/page/*.c)) $(BUILD)/gen/assets.o \
  $(patsubst %.c,$(BUILD)/%.o,$(wildcard view/*.c))

# What weir top and enqueue read, too.
$(BUILD)/tests/test_forecast: $(BUILD)/cli/top/snapshot.o $(BUILD)/cli/document/outlook.o

# Answers that are shared, with a thread of the test's own.
$(BUILD)/tests/test_shared: override LIBS += $(SERVE_LIBS)
$(BUILD)/tests/test_shared: $(patsubst %,$(BUILD)/serve/%.o,shared response)

# Slow senders, with routes of the test's own.
$(BUILD)/tests/test_slow: override LIBS += $(SERVE_LIBS)
$(BUILD)/tests/test_slow: $(patsubst %,$(BUILD)/serve/%.o,callers http listen response take_url) $(BUILD)/view/text.o $(BUILD)/view/format.o

# What is said of a worker.
$(BUILD)/tests/test_orders: $(patsubst %.c,$(BUILD)/%.o,$(wildcard view/*.c))

# The API's tables.
$(BUILD)/tests/test_nasty: $(patsubst %,$(BUILD)/serve/%.o,actions documents fields resource) $(patsubst %.c,$(BUILD)/%.o,$(wildcard view/*.c))

# weir status as text; groups of dead jobs.
$(BUILD)/tests/test_status $(BUILD)/tests/test_dead: $(patsubst %.c,$(BUILD)/%.o,$(wildcard view/*.c))

# What Prometheus reads, likewise.
$(BUILD)/tests/test_metrics: $(patsubst %.c,$(BUILD)/%.o,$(wildcard serve/metrics*.c) serve/page/data.c) $(patsubst %.c,$(BUILD)/%.o,$(wildcard view/*.c))

# What weir top shows and what keys do, without a terminal and without its thread.
$(BUILD)/tests/test_top: $(patsubst %,$(BUILD)/cli/top/%.o,action canvas cells columns columns_limits columns_queues \
  columns_types columns_workers layout line order snapshot state) \
  $(patsubst %.c,$(BUILD)/%.o,$(wildcard view/*.c))

# Its thread alone.
$(BUILD)/tests/test_top_reader: $(patsubst %,$(BUILD)/cli/top/%.o,order reader snapshot) $(patsubst %.c,$(BUILD)/%.o,$(wildcard view/*.c))

# test_versions once more, as a program of another version of Weir: its library has another name.
$(BUILD)/tests/versions/scripts.c: $(EMBED) $(LUA) tests/versions/version.lua
	@mkdir -p $(@D)
	$(call step,GEN)core/script/embed.sh $(LUA) tests/versions/version.lua > $@

# And as one that writes the next format of the data.
$(BUILD)/tests/versions/newer.c: $(EMBED) $(LUA)
	@mkdir -p $(@D)
	$(call step,GEN)sed -E 's/^(local FORMAT_(NEWEST|WRITTEN)) = .*/\1 = 2/' core/script/base.lua > $(@:.c=.lua) && \
	  BASE=$(@:.c=.lua) core/script/embed.sh $(LUA) > $@

$(BUILD)/tests/versions/%.o: $(BUILD)/tests/versions/%.c
	$(call step,CC,$<)$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

OTHER_PARTS = $(BUILD)/tests/test_versions.o $(TEST_HELPERS) $(filter-out $(BUILD)/gen/scripts.o,$(LIB_OBJECTS))

$(BUILD)/tests/versions/other: $(BUILD)/tests/versions/scripts.o $(OTHER_PARTS)
	$(call step,LINK)$(CC) $(CFLAGS) $(LDFLAGS) -rdynamic -o $@ $^ $(LIBS) -lcmocka

$(BUILD)/tests/versions/newer: $(BUILD)/tests/versions/newer.o $(OTHER_PARTS)
	$(call step,LINK)$(CC) $(CFLAGS) $(LDFLAGS) -rdynamic -o $@ $^ $(LIBS) -lcmocka

$(BUILD)/tests/test_versions: | $(BUILD)/tests/versions/other $(BUILD)/tests/versions/newer
$(BUILD)/tests/test_scale: | $(BUILD)/bench/weir-scale

# ---- The pages of weir serve in Chromium, which it installs; tests/pages/run.js

test-pages:
	@$(MAKE) -s --no-print-directory $(PARALLEL) $(BUILD)/weir
	@BUILD=$(BUILD) tests/pages/run.sh

.PHONY: test-pages

# ---- The clients in other languages, each on its own tests, its README, and a story; clients/tests/README.md

test-clients:
	@core/deps.sh clients
	@test -d clients/node/node_modules || npm install --prefix clients/node --no-package-lock --no-audit --no-fund --silent
	@$(MAKE) -s --no-print-directory $(PARALLEL) $(BUILD)/weir
	@BUILD=$(BUILD) python3 clients/tests/run.py

.PHONY: test-clients

# ---- Alert rules, by promtool of Debian's package prometheus, which it installs; no service is started

test-monitoring:
	@core/deps.sh monitoring
	@cd examples/monitoring && promtool check config prometheus.yml && promtool test rules weir.rules.test.yml

.PHONY: test-monitoring

# ---- Skew: this version and that of another commit side by side, under load; tests/skew.sh

test-skew: deps
	@test -n '$(OLD)' || { echo 'write make test-skew OLD=<commit>' && exit 64; }
	@git worktree remove --force build-skew 2>/dev/null; git worktree add --quiet --detach build-skew $(OLD)
	@$(MAKE) -s --no-print-directory $(PARALLEL) -C build-skew BUILD=build build/weir
	@$(MAKE) -s --no-print-directory $(PARALLEL) $(BUILD)/weir
	@tests/skew.sh build-skew/build/weir $(BUILD)/weir
	@git worktree remove --force build-skew

.PHONY: test-skew

# ---- Chaos: ten workers and a fault each second, chosen by SEED, for TIME seconds; tests/test_chaos.c

CHAOS_PARTS   = $(filter-out %/child.o,$(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/chaos/*.c)))
CHAOS_STARTED = $(BUILD)/tests/chaos/child $(BUILD)/tests/chaos/handlers.so

$(BUILD)/tests/test_chaos: $(CHAOS_PARTS) | $(CHAOS_STARTED) $(BUILD)/weir

$(BUILD)/tests/chaos/child: $(BUILD)/tests/chaos/child.o $(BUILD)/tests/chaos/deed.o
	$(call step,LINK)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^

$(BUILD)/tests/chaos/handlers.so: $(BUILD)/tests/chaos/handlers.o $(BUILD)/tests/chaos/deed.o
	$(call step,LINK)$(CC) $(CFLAGS) $(LDFLAGS) -shared -o $@ $^ -lev

chaos: deps
	@$(MAKE) -s --no-print-directory $(PARALLEL) $(BUILD)/tests/test_chaos
	@SEED=$(or $(SEED),$(shell date +%s)) TIME=$(or $(TIME),60) $(BUILD)/tests/test_chaos

# ---- Fuzzing: what reads the bytes of others; tests/fuzz/fuzz.h. test_fuzz runs what is kept in tests/fuzz/corpus; `make fuzz` looks
# for more, each target for TIME seconds, two at a time: build-fuzz/fuzz_job and its like, with libFuzzer.

FUZZ_TARGETS = $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_PARTS   = $(patsubst %.c,$(BUILD)/%.o,$(filter-out tests/fuzz/libfuzzer.c,$(wildcard tests/fuzz/*.c) cli/lines.c) \
                 $(call sources,serve view,c)) $(BUILD)/gen/assets.o
# Functions in whose place the targets have their own.
FUZZ_WRAPS   = redis_call redis_append redis_flush redis_result redis_load_scripts clock_sleep_until \
  child_start child_free child_line child_send child_sent child_taken child_close child_end child_distrust child_is_ending child_wait \
  child_pid child_was_terminated task_ended runner_rest take_batcher_ask take_batcher_check
FUZZ_FLAGS   = $(FUZZ_WRAPS:%=-Wl,--wrap=%)

$(BUILD)/tests/test_fuzz: $(FUZZ_PARTS)
$(BUILD)/tests/test_fuzz: LDFLAGS += $(FUZZ_FLAGS)
$(BUILD)/tests/test_fuzz: LIBS += $(SERVE_LIBS)

$(BUILD)/tests/fuzz/libfuzzer_%.o: tests/fuzz/libfuzzer.c
	@mkdir -p $(@D)
	$(call step,CC,$<)$(CC) $(CPPFLAGS) -DTARGET=fuzz_$* $(CFLAGS) -c -o $@ $<

$(BUILD)/fuzz_%: $(BUILD)/tests/fuzz/libfuzzer_%.o $(FUZZ_PARTS) $(LIB_OBJECTS)
	$(call step,LINK)$(CC) $(CFLAGS) -fsanitize=fuzzer $(LDFLAGS) $(FUZZ_FLAGS) -o $@ $^ $(LIBS) $(SERVE_LIBS)

fuzz-programs: $(FUZZ_TARGETS:%=$(BUILD)/fuzz_%)

fuzz:
	@core/deps.sh fuzz
	@$(MAKE) -s --no-print-directory $(PARALLEL) fuzz-programs BUILD=build-fuzz CC=clang SANITIZE=address,undefined \
	  CFLAGS='-O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer-no-link'
	@tests/fuzz/run.sh $(or $(TIME),60) $(or $(FUZZ),$(FUZZ_TARGETS))

.PHONY: fuzz fuzz-programs
-include $(FUZZ_PARTS:.o=.d)

test-programs: $(TEST_PROGRAMS)

# ---- From a clean clone in one command

# As many jobs as there are processors, unless -j was given.
PARALLEL = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))

deps:
	@CC='$(CC)' core/deps.sh

test: deps
	@echo "building: a minute or two in a new clone"
	@$(MAKE) -s --no-print-directory $(PARALLEL) all test-programs
	@tests/run.sh $(TEST_PROGRAMS)

demo: deps
	@echo "building: half a minute in a new clone"
	@$(MAKE) -s --no-print-directory $(PARALLEL) all
	@BUILD=$(BUILD) examples/demo.sh

# ---- Man pages: of commands from doc/cli.md, which is what weir help prints; of the library from weir.h; of the protocol where lowdown is

AWK_MAN = awk -v dir=$(BUILD)/man$1 -v version=$(VERSION) -v date=$(shell date -u -d @$(DIST_TIME) +%F) -f packaging/roff.awk -f

$(BUILD)/man/made: doc/cli.md doc/protocol.md include/weir.h $(wildcard packaging/*.awk)
	@rm -rf $(@D) && mkdir -p $(addprefix $(@D)/man,1 3 5 7)
	$(call step,MAN)$(call AWK_MAN,) packaging/man.awk doc/cli.md && $(call AWK_MAN,/man3) packaging/man_library.awk include/weir.h
	@if command -v lowdown >/dev/null; then lowdown -s -Tman -M title=WEIR-PROTOCOL -M section=7 -M date=$(shell date -u -d @$(DIST_TIME) +%F) \
	  -M source='Weir $(VERSION)' doc/protocol.md | awk -f packaging/protocol.awk > $(@D)/man7/weir-protocol.7; fi
	@touch $@

# ---- What is installed: the GNU variables, and DESTDIR before them. PREFIX is prefix.

prefix      = $(or $(PREFIX),/usr/local)
exec_prefix = $(prefix)
bindir      = $(exec_prefix)/bin
libdir      = $(exec_prefix)/lib
includedir  = $(prefix)/include
sysconfdir  = /etc
datarootdir = $(prefix)/share
datadir     = $(datarootdir)
mandir      = $(datarootdir)/man
bashcompdir = $(datadir)/bash-completion/completions
zshcompdir  = $(datadir)/zsh/site-functions
fishcompdir = $(datadir)/fish/vendor_completions.d
systemddir  = $(prefix)/lib
docdir      = $(datadir)/doc/weir
UNITS       = weir-worker@.service weir-serve.service weir-serve.socket

PAGES_OF   = $(patsubst $(BUILD)/man/%,$(mandir)/%,$(wildcard $(BUILD)/man/man[1357]/*.[1357])) $(addprefix $(mandir)/man3/,$(file <$(BUILD)/man/man3/links))
INSTALLED  = $(PAGES_OF) $(bashcompdir)/weir $(zshcompdir)/_weir $(fishcompdir)/weir.fish $(docdir)/weir.conf \
             $(addprefix $(systemddir)/,$(UNITS:%=systemd/system/%) sysusers.d/weir.conf tmpfiles.d/weir.conf) $(bindir)/weir $(includedir)/weir.h $(libdir)/libweir.a $(libdir)/libweir.so.0 $(libdir)/libweir.so $(libdir)/pkgconfig/weir.pc
# Where weir.conf is looked for: compiled anew where that is another place than last time.
$(BUILD)/cli/config.o: override CPPFLAGS += -DSYSCONFDIR='"$(sysconfdir)"'
$(BUILD)/cli/config.o: $(BUILD)/gen/sysconfdir
$(BUILD)/gen/sysconfdir: FORCE
	@mkdir -p $(@D); echo '$(sysconfdir)' | cmp -s - $@ || echo '$(sysconfdir)' > $@

VERSION  := $(shell sed -n 's/^.define WEIR_VERSION "\(.*\)"/\1/p' include/weir.h)

# Written anew each time, as variables may differ from those of the last time.
$(BUILD)/weir.pc: include/weir.pc.in FORCE
	@mkdir -p $(@D)
	@sed 's|@prefix@|$(prefix)|; s|@libdir@|$(libdir)|; s|@includedir@|$(includedir)|; s|@VERSION@|$(VERSION)|' $< > $@

install: $(BUILD)/weir $(BUILD)/libweir.a $(BUILD)/libweir.so $(BUILD)/weir.pc $(BUILD)/man/made
	$(INSTALL) -d $(addprefix $(DESTDIR),$(bindir) $(includedir) $(libdir)/pkgconfig $(mandir)/man1 $(mandir)/man3 $(mandir)/man5 $(mandir)/man7 $(docdir) \
	  $(bashcompdir) $(zshcompdir) $(fishcompdir) $(systemddir)/systemd/system $(systemddir)/sysusers.d $(systemddir)/tmpfiles.d)
	$(INSTALL) $(BUILD)/weir $(DESTDIR)$(bindir)
	$(INSTALL) -m 644 include/weir.h $(DESTDIR)$(includedir)
	$(INSTALL) -m 644 $(BUILD)/libweir.a $(BUILD)/libweir.so.0 $(DESTDIR)$(libdir)
	ln -sf libweir.so.0 $(DESTDIR)$(libdir)/libweir.so
	$(INSTALL) -m 644 $(BUILD)/weir.pc $(DESTDIR)$(libdir)/pkgconfig
	for page in $(BUILD)/man/man[1357]/*.[1357]; do $(INSTALL) -m 644 $$page $(DESTDIR)$(mandir)/$$(basename $$(dirname $$page)); done
	for page in $$(cat $(BUILD)/man/man3/links); do ln -sf libweir.3 $(DESTDIR)$(mandir)/man3/$$page; done
	$(INSTALL) -m 644 packaging/completion/weir.bash $(DESTDIR)$(bashcompdir)/weir
	$(INSTALL) -m 644 packaging/completion/_weir $(DESTDIR)$(zshcompdir)
	$(INSTALL) -m 644 packaging/completion/weir.fish $(DESTDIR)$(fishcompdir)
	$(INSTALL) -m 644 packaging/weir.conf $(DESTDIR)$(docdir)
	$(INSTALL) -m 644 packaging/systemd/weir.sysusers $(DESTDIR)$(systemddir)/sysusers.d/weir.conf
	$(INSTALL) -m 644 packaging/systemd/weir.tmpfiles $(DESTDIR)$(systemddir)/tmpfiles.d/weir.conf
	$(INSTALL) -m 644 $(UNITS:%=packaging/systemd/%) $(DESTDIR)$(systemddir)/systemd/system
	sed -i 's|@bindir@|$(bindir)|; s|@sysconfdir@|$(sysconfdir)|' $(addprefix $(DESTDIR)$(systemddir)/,$(UNITS:%=systemd/system/%) tmpfiles.d/weir.conf)

uninstall: $(BUILD)/man/made
	rm -f $(addprefix $(DESTDIR),$(INSTALLED))

# ---- The archive of a release, and its checksum: build/dist/weir-VERSION.tar.gz. What stands in it depends on nothing else.

DIST      = weir-$(VERSION)
DIST_TIME = $(or $(SOURCE_DATE_EPOCH),$(shell if [ -e .git ]; then git log -1 --format=%ct; else stat -c %Y include/weir.h; fi))

dist:
	@rm -rf $(BUILD)/dist && mkdir -p $(BUILD)/dist
	@{ if [ -e .git ]; then git ls-files -z; else find . \( -path './build*' -o -name .weir -o -name demo-out \) -prune -o -type f -printf '%P\0'; fi; } | LC_ALL=C sort -z | \
	  tar --null -T - --format=ustar --owner=0 --group=0 --numeric-owner --mode=u+w,go-w,a+rX --mtime=@$(DIST_TIME) \
	    --transform='s,^,$(DIST)/,' -cf - | gzip -9n > $(BUILD)/dist/$(DIST).tar.gz
	@cd $(BUILD)/dist && sha256sum $(DIST).tar.gz | tee SHA256SUMS

# ---- Packages of Debian, made from that archive in build/deb: weir, libweir0, libweir-dev. `make test-deb` installs, uses, upgrades and
# purges them in a Debian 12 of their own (as root); tests/deb.sh

DEB_FILES = $(BUILD)/deb/weir_$(VERSION)

deb: dist
	@core/deps.sh deb
	@grep -q '^weir ($(VERSION)-' debian/changelog || { echo 'debian/changelog: no entry for $(VERSION)' && exit 1; }
	@rm -rf $(BUILD)/deb && mkdir -p $(BUILD)/deb && cp $(BUILD)/dist/$(DIST).tar.gz $(DEB_FILES).orig.tar.gz
	@tar -xzf $(DEB_FILES).orig.tar.gz -C $(BUILD)/deb
	@cd $(BUILD)/deb/$(DIST) && env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u CFLAGS -u CPPFLAGS -u LDFLAGS dpkg-buildpackage -us -uc
	@ls $(BUILD)/deb/*.deb

test-deb: deb
	@tests/deb.sh $(BUILD)/deb

.PHONY: FORCE uninstall dist deb test-deb

# The protocol, in every order of events, by spin (installed by hand: apt-get install spin).
model:
	@tests/model/run.sh

.PHONY: model

# cppcheck and clang-tidy; installs them.
lint:
	@core/deps.sh lint
	@tests/lint.sh

.PHONY: lint

# ---- Benchmark

BENCH_OBJECTS = $(patsubst %.c,$(BUILD)/%.o,$(wildcard bench/*.c)) $(BUILD)/tests/proxy.o

$(BUILD)/bench/weir-bench: $(BENCH_OBJECTS) $(LIB_OBJECTS)
	$(call step,LINK)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

# For example: make bench BENCH='--quick --only run,pace'
bench: deps
	@$(MAKE) -s --no-print-directory $(PARALLEL) $(BUILD)/weir $(BUILD)/bench/weir-bench
	@$(BUILD)/bench/weir-bench $(BENCH)

.PHONY: bench
-include $(BENCH_OBJECTS:.o=.d)

# ---- Against another revision: this version and that one in turns; bench/against.sh. For example: make bench-against REV=HEAD~

AGAINST = bench/against/client.c -o $1/client $1/libweir.a $(LIBS)

bench-against: deps
	@test -n '$(REV)' || { echo 'write make bench-against REV=<commit>' && exit 64; }
	@git worktree remove --force build-against 2>/dev/null; git worktree add --quiet --detach build-against $(REV)
	@$(MAKE) -s --no-print-directory $(PARALLEL) -C build-against BUILD=build build/weir build/libweir.a
	@$(MAKE) -s --no-print-directory $(PARALLEL) $(BUILD)/weir $(BUILD)/libweir.a
	@$(CC) -D_GNU_SOURCE -Ibuild-against/include -std=c11 -O2 -pthread $(call AGAINST,build-against/build)
	@$(CC) -D_GNU_SOURCE -Iinclude -std=c11 -O2 -pthread $(call AGAINST,$(BUILD))
	@bench/against.sh build-against/build $(BUILD)
	@git worktree remove --force build-against

.PHONY: bench-against

# ---- The simulation of doc/scale.md: 1 to 10,000 workers under virtual time; some minutes. Some of it:
# make scale SCALE='--only fast --most 100'

SCALE_OBJECTS = $(patsubst %.c,$(BUILD)/%.o,$(wildcard bench/scale/*.c) bench/server.c)

$(BUILD)/bench/weir-scale: $(SCALE_OBJECTS) $(LIB_OBJECTS)
	$(call step,LINK)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

scale: deps
	@$(MAKE) -s --no-print-directory $(PARALLEL) $(BUILD)/bench/weir-scale
	@$(BUILD)/bench/weir-scale $(SCALE)

.PHONY: scale
-include $(SCALE_OBJECTS:.o=.d)

# ---- Beside other queues, the same work in turns; bench/peers/run.py says how. Half an hour; some of it:
# make bench-peers PEERS='--peers weir,bullmq --rows run --repeats 1'

PEERS_BUILD   = $(BUILD)/peers
PEERS_CLIENTS = $(patsubst bench/peers/clients/%.c,$(PEERS_BUILD)/%,$(wildcard bench/peers/clients/*.c))

$(PEERS_BUILD)/gearmand: PEER_LIBS = -lgearman

$(PEERS_BUILD)/%: bench/peers/clients/%.c bench/peers/clients/record.h $(BUILD)/libweir.a
	@mkdir -p $(@D)
	$(call step,CC,$<)$(CC) -D_GNU_SOURCE -I. -Iinclude -std=c11 -O2 -g $(WARNINGS) -pthread -o $@ $< $(BUILD)/libweir.a $(LIBS) $(PEER_LIBS)

$(PEERS_BUILD)/node_modules: bench/peers/package.json
	@mkdir -p $(@D)
	@cp $< $(@D)
	$(call step,NPM)cd $(@D) && npm install --silent --no-audit --no-fund --no-package-lock && touch $(@F)

bench-peers:
	@core/deps.sh peers
	@$(MAKE) -s --no-print-directory $(PARALLEL) all $(PEERS_CLIENTS) $(PEERS_BUILD)/node_modules
	@bench/peers/run.py $(PEERS_BUILD) $(PEERS)

.PHONY: bench-peers

clean:
	rm -rf build build-*

.PHONY: chaos all examples test-programs deps test demo install clean
.SECONDARY:
.DELETE_ON_ERROR:

-include $(CHAOS_PARTS:.o=.d) $(LIB_OBJECTS:.o=.d) $(CLI_OBJECTS:.o=.d) $(TEST_PROGRAMS:=.d) $(TEST_HELPERS:.o=.d)
