#!/bin/bash
# The packages of Debian, in a Debian 12 of their own: they install and are used; a version before is upgraded while it has jobs, and each
# of these ends once; a worker as process 1 of a container reaps what others left, as any user, on a read-only root; and purged they
# leave nothing. The units are started by a systemd in namespaces and a cgroup of its own: one file is edited, and it runs. lintian has nothing
# to say. Run as root: tests/deb.sh FOLDER, with the packages in it. DEBIAN may name what debootstrap has made already; it is copied. No
# container engine is needed, and none is tried.
set -eu

packages=$(realpath "$1")
folder=$(mktemp -d "${TMPDIR:-/tmp}/weir-deb.XXXXXX")
root=$folder/root
cgroup=$(findmnt -n -o TARGET -t cgroup2 | head -n 1)/${folder##*/}
end() {
    [ -z "${init:-}" ] || kill -KILL "$init" || true
    for pid in $(find /proc/[0-9]*/root -maxdepth 0 -lname "$root" 2>/dev/null | cut -d / -f 3); do kill -KILL "$pid" || true; done
    umount -R "$root/proc" "$root/ro" 2>/dev/null || true
    rm -rf --one-file-system "$folder"
    for _ in $(seq 50); do [ ! -d "$cgroup" ] || find "$cgroup" -depth -type d -exec rmdir {} + 2>/dev/null || sleep 0.1; done
}
trap end EXIT
trap 'exit 1' INT TERM

say() { echo "test-deb: $*"; }
clean() { env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 "$@"; }
inside() { clean chroot "$root" bash -eu -o pipefail -c "$1"; }
machine() { clean timeout 100 nsenter -t "$init" -a bash -eu -o pipefail -c "$1" || { clean nsenter -t "$init" -a journalctl -n 30 --no-pager && exit 1; }; }
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

say installed
install redis-server systemd dbus /before/weir.deb
inside 'weir version && id weir && [ "$(stat -c "%a %G" /etc/weir /etc/weir/weir.conf | xargs)" = "750 weir 640 weir" ] && dpkg-query -W -f "\${Conffiles}" weir | grep -q " /etc/weir/weir.conf " && weir config >/dev/null && [ -s /usr/share/man/man1/weir-worker.1.gz ]'
rm "$root/usr/sbin/policy-rc.d"

# A systemd with this root, which sees and changes nothing of the machine around it.
mkdir "$cgroup"
# shellcheck disable=SC2016
sh -c 'echo $$ >"$1/cgroup.procs"; exec unshare --fork --kill-child --pid --mount --uts --ipc --net --cgroup sh -euc "$2" x "$3"' x "$cgroup" '
    mount --make-rprivate / && mount --bind "$1" "$1" && cd "$1"
    mount -t proc proc proc && mount --bind proc/sys proc/sys && mount -o remount,bind,ro proc/sys
    mount -t sysfs -o ro sys sys && mount -t cgroup2 cgroup2 sys/fs/cgroup && mount -t tmpfs run run && mount -t tmpfs dev dev
    mkdir dev/pts dev/shm && mount -t devpts -o newinstance,ptmxmode=666 pts dev/pts && ln -s pts/ptmx dev/ptmx && mount -t tmpfs shm dev/shm
    for device in null zero full random urandom tty; do cp -a "/dev/$device" dev; done
    mkdir old && pivot_root . old && umount -l /old && rmdir /old
    exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=multi-user.target' "$root" >"$folder/systemd.log" 2>&1 &
for _ in $(seq 300); do
    init=$(for pid in $(cat "$cgroup"/cgroup.procs "$cgroup"/init.scope/cgroup.procs 2>/dev/null); do [ "$(cat "/proc/$pid/comm")" != systemd ] || echo "$pid"; done | head -n 1)
    [ -z "$init" ] || ! clean nsenter -t "$init" -a systemctl is-system-running 2>/dev/null | grep -q running || break
    sleep 0.1
done

say one file edited, started, upgraded with jobs inside
machine 'systemctl start redis-server
    printf "[handler mail]\nexec = sh -c '\''echo \$WEIR_JOB_ID >>ended'\''\n[limit mail]\nrules = 1/1s,burst=1\n" >>/etc/weir/weir.conf
    weir apply
    seq 100 | weir enqueue --from - mail 2>/dev/null
    systemctl start weir-worker@default weir-serve
    systemctl restart weir-serve & restart=$!
    while kill -0 $restart 2>/dev/null; do if redis-cli -s /run/weir/serve.sock ping 2>&1 | grep "Could not connect"; then exit 1; fi; done
    wait $restart
    until [ -s /var/lib/weir/ended ]; do sleep 0.1; done
    apt-get -qq -y install /new/weir_*.deb >/dev/null 2>&1
    dpkg -s weir | grep "^Version: [^0]\|^Version: 0\.[^0]"
    [ "$(wc -l </var/lib/weir/ended)" -lt 100 ]
    sed -i "s/>>ended/>>later/; s,^rules = .*,rules = 1000/1s," /etc/weir/weir.conf
    systemctl reload weir-worker@default
    weir apply
    ended() { cat /var/lib/weir/ended /var/lib/weir/later 2>/dev/null || true; }
    while [ "$(ended | wc -l)" -lt 100 ]; do sleep 0.1; done
    [ "$(ended | sort -u | wc -l)" -eq 100 ]
    [ -s /var/lib/weir/later ]
    systemctl show -p StatusText weir-worker@default
    [ "$(systemctl show -p NRestarts --value weir-worker@default weir-serve | xargs)" = "0 0" ]
    weir report
    [ "$(stat -c "%a %U %G" /run/weir/serve.sock)" = "660 weir weir" ]'

say process 1, any user, a read-only root
mkdir -p "$root/ro" "$root/srv/out" "$root/srv/q" && chmod 777 "$root/srv/out" "$root/srv/q"
mount --bind "$root" "$root/ro" && mount -o remount,ro,bind "$root/ro"
mount --bind "$root/srv/out" "$root/ro/srv/out" && mount --bind "$root/srv/q" "$root/ro/srv/q"
inside 'redis-server --port 0 --unixsocket /srv/q/redis.sock --unixsocketperm 777 --save "" --daemonize yes --pidfile /srv/q/pid --dir /srv/q >/dev/null
    until [ -S /srv/q/redis.sock ]; do sleep 0.1; done; REDIS_URL=unix:///srv/q/redis.sock weir enqueue orphan 1 >/dev/null'
timeout 60 unshare --pid --fork --mount --mount-proc="$root/ro/proc" chroot "$root/ro" setpriv --reuid 12345 --regid 12345 --clear-groups \
    env -i PATH=/usr/bin:/bin REDIS_URL=unix:///srv/q/redis.sock \
    weir worker --exec "orphan=sh -c '(sleep 0.2 &); sleep 1; id -u >/srv/out/user; touch /usr/x; cat /proc/[0-9]*/status | grep -c State:.Z >/srv/out/zombies; true'" --drain
umount -R "$root/ro"
kill "$(cat "$root/srv/q/pid")"
[ "$(cat "$root/srv/out/user")" = 12345 ] && [ ! -e "$root/usr/x" ] && [ "$(cat "$root/srv/out/zombies")" = 0 ]

say autopkgtests
install gcc libc6-dev pkg-config /new/libweir0_*.deb /new/libweir-dev_*.deb
mkdir "$root/tests" && cp "$(dirname "$0")"/../debian/tests/* "$root/tests"
for test in queue build; do inside "/tests/$test" >"$folder/log" 2>&1 || { tail -n 20 "$folder/log" && exit 1; }; done
machine 'cp /etc/weir/weir.conf /tmp && /tests/unit >/tmp/unit.log 2>&1 || { tail -n 20 /tmp/unit.log && exit 1; }; cat /tmp/weir.conf >/etc/weir/weir.conf'

say purged
machine 'systemctl start weir-worker@default weir-serve && touch /etc/weir/worker/mine.env
    apt-get -qq -y purge weir libweir0 libweir-dev >/dev/null 2>&1
    [ -z "$(systemctl list-units --no-legend "weir-*")" ]
    left=$(find / -xdev -name "*weir*" ! -path "/new/*" ! -path "/before/*" ! -path "/proc/*" ! -path "/tmp/*" ! -path "/var/log/*" ! -path "/var/cache/*" ! -path "/ro*")
    [ -z "$left" ] || { echo "left: $left" && exit 1; }'
say passed
