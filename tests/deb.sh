#!/bin/bash
# The packages of Debian, in a Debian 12 of their own: they install and are used; a version before is upgraded while it has jobs, and each
# of these ends once; a worker as process 1 of a container reaps what others left, as any user, on a read-only root; and purged they
# leave nothing. lintian has nothing to say. Run as root: tests/deb.sh FOLDER, with the packages in it. DEBIAN may name what debootstrap has
# made already; it is copied. No container engine is needed, and none is tried.
set -eu

packages=$(realpath "$1")
folder=$(mktemp -d "${TMPDIR:-/tmp}/weir-deb.XXXXXX")
root=$folder/root
end() {
    for pid in $(find /proc/[0-9]*/root -maxdepth 0 -lname "$root" 2>/dev/null | cut -d / -f 3); do kill -KILL "$pid" || true; done
    umount -R "$root/proc" "$root/ro" 2>/dev/null || true
    rm -rf --one-file-system "$folder"
}
trap end EXIT
trap 'exit 1' INT TERM

say() { echo "test-deb: $*"; }
inside() { chroot "$root" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 bash -eu -o pipefail -c "$1"; }
install() { inside "apt-get -qq -y install --no-install-recommends $* >/tmp/apt.log 2>&1" || { tail -n 20 "$root/tmp/apt.log" && exit 1; }; }

say lintian
lintian --allow-root --fail-on error,warning,info,pedantic,experimental -EIL +pedantic "$packages"/weir_*.changes

say a Debian 12
if [ -n "${DEBIAN:-}" ]; then cp -a "$DEBIAN" "$root"; else debootstrap --variant=minbase bookworm "$root" >"$folder/log"; fi
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
mount -t proc proc "$root/proc"
inside 'apt-get -qq update'
mkdir "$root/new" "$root/before"
cp "$packages"/*.deb "$root/new"
# The version before: the same with a smaller number.
dpkg-deb -R "$packages"/weir_*.deb "$folder/before"
sed -i 's/^Version: .*/Version: 0.0.1-1/' "$folder/before/DEBIAN/control"
dpkg-deb --root-owner-group -b "$folder/before" "$root/before/weir.deb" >/dev/null

say installed and used
install redis-server systemd-standalone-sysusers /before/weir.deb
inside 'weir version && id weir && [ "$(stat -c "%a %G" /etc/weir /etc/weir/weir.conf | xargs)" = "750 weir 640 weir" ] && dpkg-query -W -f "\${Conffiles}" weir | grep -q " /etc/weir/weir.conf " && weir config >/dev/null && [ -s /usr/share/man/man1/weir-worker.1.gz ]'

say upgraded with jobs inside
inside 'mkdir -m 777 /srv/q && cd /srv/q && redis-server --port 0 --unixsocket /srv/q/redis.sock --unixsocketperm 777 --save "" --daemonize yes >/dev/null && sleep 1
    export REDIS_URL=unix:///srv/q/redis.sock
    weir rate set mail 20/1s,burst=1 >/dev/null
    seq 100 | weir enqueue --from - mail 2>/dev/null
    setpriv --reuid weir --regid weir --clear-groups weir worker --exec "mail=sh -c '\''echo \$WEIR_JOB_ID >>/srv/q/ended'\''" --drain >worker.log 2>&1 &
    echo $! >worker; until [ -s ended ]; do sleep 0.1; done'
install /new/weir_*.deb
inside 'cd /srv/q; export REDIS_URL=unix:///srv/q/redis.sock
    [ "$(wc -l <ended)" -lt 100 ] && kill "$(cat worker)" && while kill -0 "$(cat worker)" 2>/dev/null; do sleep 0.1; done
    dpkg -s weir | grep "^Version: [^0]\|^Version: 0\.[^0]"
    weir worker --exec "mail=sh -c '\''echo \$WEIR_JOB_ID >>/srv/q/ended'\''" --drain 2>>worker.log
    [ "$(wc -l <ended)" -eq 100 ] && [ "$(sort -u ended | wc -l)" -eq 100 ] && weir report'

say process 1, any user, a read-only root
mkdir -p "$root/ro" "$root/srv/out" && chmod 777 "$root/srv/out"
mount --bind "$root" "$root/ro" && mount -o remount,ro,bind "$root/ro"
mount --bind "$root/srv/out" "$root/ro/srv/out" && mount --bind "$root/srv/q" "$root/ro/srv/q"
inside 'REDIS_URL=unix:///srv/q/redis.sock weir enqueue orphan 1 >/dev/null'
timeout 60 unshare --pid --fork --mount --mount-proc="$root/ro/proc" chroot "$root/ro" setpriv --reuid 12345 --regid 12345 --clear-groups \
    env -i PATH=/usr/bin:/bin REDIS_URL=unix:///srv/q/redis.sock \
    weir worker --exec "orphan=sh -c '(sleep 0.2 &); sleep 1; id -u >/srv/out/user; touch /usr/x; cat /proc/[0-9]*/status | grep -c State:.Z >/srv/out/zombies; true'" --drain
umount -R "$root/ro"
[ "$(cat "$root/srv/out/user")" = 12345 ] && [ ! -e "$root/usr/x" ] && [ "$(cat "$root/srv/out/zombies")" = 0 ]

say autopkgtests
install gcc libc6-dev pkg-config /new/libweir0_*.deb /new/libweir-dev_*.deb
mkdir "$root/tests" && cp "$(dirname "$0")"/../debian/tests/* "$root/tests"
for test in queue build; do inside "/tests/$test" >"$folder/log" 2>&1 || { tail -n 20 "$folder/log" && exit 1; }; done

say purged
inside 'kill "$(pidof redis-server)" 2>/dev/null || true; touch /etc/weir/worker/mine.env; mkdir -p /var/lib/weir
    apt-get -qq -y purge weir libweir0 libweir-dev >/dev/null 2>&1
    left=$(find / -xdev -name "*weir*" ! -path "/new/*" ! -path "/before/*" ! -path "/proc/*" ! -path "/tmp/*" ! -path "/var/log/*" ! -path "/var/cache/*" ! -path "/ro*")
    [ -z "$left" ] || { echo "left: $left" && exit 1; }'
say passed
