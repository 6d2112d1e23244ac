#!/bin/sh
# make deps: installs from Debian what building, testing and the demo need and this machine lacks. On other systems it
# names that and stops. No service is started or enabled: Weir's tests and the demo run a redis-server of their own.
# deps.sh clients, deb, fuzz, lint, monitoring, pages, peers: what those targets need besides.
set -eu

cc=${CC:-cc}
missing=''
need() { # PACKAGE TEST...: the package is missing when the test fails
    package=$1
    shift
    "$@" >/dev/null 2>&1 || missing="$missing $package"
}
header() { echo "#include <$1>" | "$cc" -E -x c - ; }

need make command -v make
need gcc command -v "$cc"
need binutils command -v objcopy
need libc6-dev header stdio.h
need libhiredis-dev header hiredis/hiredis.h
need libev-dev header ev.h
need libjansson-dev header jansson.h
need libglib2.0-dev pkg-config --exists glib-2.0
need libssl-dev header openssl/ssl.h
need openssl command -v openssl
need tzdata test -e /usr/share/zoneinfo/Europe/Berlin
need libmicrohttpd-dev header microhttpd.h
need libncurses-dev header curses.h
need tmux command -v tmux
need curl command -v curl
need libcurl4-openssl-dev header curl/curl.h
need libcmocka-dev sh -c "printf '#include <%s>\n' stdarg.h stddef.h stdint.h setjmp.h cmocka.h | '$cc' -E -x c -"
need redis-server command -v redis-server
need python3 python3 -c 'import http.server, json'
need nginx-light sh -c 'PATH=$PATH:/usr/sbin command -v nginx'
case ${1:-} in
fuzz)
    need clang command -v clang
    need libclang-rt-14-dev sh -c 'echo "int LLVMFuzzerTestOneInput(void) { return 0; }" | clang -fsanitize=fuzzer -x c -o /dev/null -'
    ;;
lint)
    need cppcheck command -v cppcheck
    need clang-tidy command -v clang-tidy
    ;;
pages)
    need nodejs command -v node
    need npm command -v npm
    need chromium sh -c 'command -v chromium || command -v chromium-browser || command -v google-chrome'
    need fonts-noto-core test -d /usr/share/fonts/truetype/noto
    ;;
deb)
    need debhelper command -v dh
    need dpkg-dev command -v dpkg-buildpackage
    need fakeroot command -v fakeroot
    need lintian command -v lintian
    need debootstrap sh -c 'PATH=$PATH:/usr/sbin command -v debootstrap'
    need lowdown command -v lowdown
    ;;
monitoring)
    need prometheus command -v promtool
    ;;
clients)
    need python3-redis /usr/bin/python3 -c 'import redis.asyncio'
    need nodejs command -v node
    need npm command -v npm
    need ruby command -v ruby
    need ruby-redis ruby -e 'require "redis"'
    need ruby-activejob ruby -e 'require "active_job"'
    need ruby-minitest ruby -e 'require "minitest"'
    need golang-go command -v go
    need golang-github-fzambia-sentinel-dev test -d /usr/share/gocode/src/github.com/FZambia/sentinel
    need golang-github-mna-redisc-dev test -d /usr/share/gocode/src/github.com/mna/redisc
    need golang-github-gomodule-redigo-dev test -d /usr/share/gocode/src/github.com/gomodule/redigo
    ;;
peers)
    need nodejs command -v node
    need npm command -v npm
    need beanstalkd command -v beanstalkd
    need gearman-job-server sh -c 'PATH=$PATH:/usr/sbin command -v gearmand'
    need libgearman-dev header libgearman/gearman.h
    need python3-celery /usr/bin/python3 -c 'import celery'
    need python3-redis /usr/bin/python3 -c 'import redis'
    need python3-hiredis /usr/bin/python3 -c 'import hiredis'
    need python3-rq /usr/bin/python3 -c 'import rq'
    ;;
esac
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null; then
    echo "make deps: missing (as Debian names it):$missing; install what your system calls so, then make again" >&2
    exit 1
fi
if [ "$(id -u)" -eq 0 ]; then
    as_root=''
elif command -v sudo >/dev/null; then
    as_root=sudo
else
    echo "make deps: missing:$missing; as root: apt-get install$missing" >&2
    exit 1
fi

echo "make deps: installing$missing" >&2
# policy-rc.d is what Debian's packages ask before they start their service.
$as_root sh -eu -c '
    policy=/usr/sbin/policy-rc.d
    if [ ! -e $policy ]; then
        trap "rm -f $policy" EXIT
        trap "exit 1" INT TERM
        printf "#!/bin/sh\nexit 101\n" >$policy
        chmod 755 $policy
    fi
    export DEBIAN_FRONTEND=noninteractive
    apt-get -qq update
    apt-get -qq -y install --no-install-recommends "$@" >/dev/null
    for package in "$@"; do
        case $package in redis-server | nginx-light | beanstalkd | gearman-job-server) service=${package%-light} ;; *) continue ;; esac
        [ ! -d /run/systemd/system ] || systemctl -q disable "$service"
    done
' sh $missing
