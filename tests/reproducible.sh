#!/bin/bash
# The archive of make dist: it is the same when it is made from itself, without git; it builds with the flags of a packager, which win; and two
# builds of it in two folders are equal, byte by byte. Prints what is wrong, and exits 1.
set -eu
cd "$(dirname "$0")/.."

folder=$(mktemp -d "${TMPDIR:-/tmp}/weir-dist.XXXXXX")
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM

make -s dist BUILD="$folder/first" >"$folder/sums"
archive=$(echo "$folder"/first/dist/weir-*.tar.gz)
export CFLAGS='-O1 -g' CPPFLAGS=-DPACKAGER=1 LDFLAGS=-Wl,-z,now
for place in here another/place; do
    mkdir -p "$folder/$place"
    tar -xzf "$archive" -C "$folder/$place"
    cd "$folder/$place"/weir-*
    make -n V=1 build/core/arena.o | grep -q -- '-DPACKAGER=1 .* -O1 -g ' || { echo "the packager's flags do not come last" && exit 1; }
    make -s -j"$(nproc)" install DESTDIR="$folder/$place/root" prefix=/usr libdir=/usr/lib/multiarch >>"$folder/log"
    make -s dist >"$folder/again"
    cmp "$folder/sums" "$folder/again"
done
readelf -d "$folder/here/root/usr/bin/weir" | grep -q BIND_NOW || { echo "LDFLAGS are not heard" && exit 1; }
diff -r "$folder/here/root" "$folder/another/place/root"
