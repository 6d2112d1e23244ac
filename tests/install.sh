#!/bin/bash
# What make install leaves is enough for a program outside of this source: the header, as C and C++ by gcc and clang; the examples;
# own_worker, linked to the shared and to the static library by pkg-config, and run on a private Redis. The libraries export only
# the names of weir.h, and all that tests/abi.txt lists. Its manual is whole.
# make uninstall leaves nothing. Prints what is wrong, and exits 1. BUILD names the folder of what was built.
set -eu
cd "$(dirname "$0")/.."
source=$PWD

folder=$(mktemp -d "${TMPDIR:-/tmp}/weir-install.XXXXXX")
dev=''
trap '[ -z "$dev" ] || { kill $dev; wait $dev || true; }; rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM

make_it() { make -s "$@" BUILD="${BUILD:-build}" DESTDIR="$folder/root" prefix=/opt/weir libdir=/opt/weir/lib/multiarch >"$folder/log"; }
make_it install
weir=$folder/root/opt/weir
cd "$folder"
export PKG_CONFIG_PATH=$weir/lib/multiarch/pkgconfig PKG_CONFIG_SYSROOT_DIR=$folder/root LD_LIBRARY_PATH=$weir/lib/multiarch PATH=$weir/bin:$PATH
unset REDIS_URL WEIR_NAMESPACE

strict='-pedantic-errors -Wall -Wextra -Wconversion -Werror'
echo '#include <weir.h>' >use.c
for cc in gcc clang; do
    for std in c99 c11 c17; do
        $cc -std=$std $strict $(pkg-config --cflags weir) -fsyntax-only use.c
        for example in "$source"/examples/*.c; do
            $cc -std=$std -pedantic -Wall -Wextra -Werror $(pkg-config --cflags weir) -fsyntax-only "$example"
        done
    done
done
for std in c++11 c++17 c++20; do clang -x c++ -std=$std $strict $(pkg-config --cflags weir) -fsyntax-only use.c; done

declared=$(grep -o '\bweir_[a-z_]*(' "$weir/include/weir.h" | tr -d '(' | sort -u)
exported=$(nm -P --defined-only -g "$weir/lib/multiarch/libweir.a" | awk 'NF > 2 { print $1 }' | sort -u)
more=$(comm -13 <(echo "$declared") <(echo "$exported"))
[ -z "$more" ] || { echo "libweir.a exports what weir.h does not declare:" $more && exit 1; }

# What programs that were linked to an earlier libweir.so.0 rely on: symbols with their versions, and of each struct where its members
# begin and its size. A line of tests/abi.txt never goes or changes; new ones are added with what is new.
abi() {
    nm -D --defined-only "$weir/lib/multiarch/libweir.so.0" | awk '{ print $3 }'
    {
        echo '#include <stdio.h>'
        echo '#include <weir.h>'
        echo 'int main(void) {'
        awk '/^struct [a-z_]* {/ { name = $2 }
             /^}/ { if (name) printf "printf(\"%s %%zu\\n\", sizeof(struct %s));\n", name, name; name = "" }
             name && match($0, /^    [a-z][^;]*;/) {
                 member = substr($0, 1, RLENGTH - 1); sub(/\[.*/, "", member); sub(/.*[ *]/, "", member)
                 printf "printf(\"%s.%s %%zu\\n\", offsetof(struct %s, %s));\n", name, member, name, member }' "$weir/include/weir.h"
        echo '}'
    } >abi.c
    gcc $(pkg-config --cflags weir) abi.c -o abi && ./abi
}
if [ "$(uname -m)" = x86_64 ]; then
    abi >abi.txt
    diff "$source/tests/abi.txt" abi.txt || { echo 'tests/abi.txt: the library that programs were linked to has changed' && exit 1; }
fi

# Completion in bash, where the word is cut at =.
bash -c '. "$1" && COMP_WORDS=(weir acl --namespace = x v) COMP_CWORD=5 && _weir weir && [ "${COMPREPLY[*]}" = viewer ] &&
    COMP_WORDS=(weir worker --log-level = w) COMP_CWORD=4 && _weir weir && [ "${COMPREPLY[*]}" = warn ]' \
    bash "$weir/share/bash-completion/completions/weir" || { echo 'completion in bash is wrong' && exit 1; }

# Units that systemd finds nothing wrong with, and hardly anything to attack.
cp "$weir/lib/systemd/system/weir-serve.socket" .
for unit in weir-worker@.service weir-serve.service; do
    sed "s|/opt/weir|$weir|" "$weir/lib/systemd/system/$unit" >"${unit/@/@x}"
    systemd-analyze verify --man=no "./${unit/@/@x}" 2>&1 | grep . && exit 1
    systemd-analyze security --offline=true --threshold=20 "$weir/lib/systemd/system/$unit" >security || { tail -n 3 security && exit 1; }
done

# A page for each command and for each function, which mandoc finds nothing wrong with.
man=$weir/share/man
for page in weir $(weir help | sed -n 's/^  \([a-z]*\)  .*/weir-\1/p'); do [ -s "$man/man1/$page.1" ] || { echo "no page $page(1)" && exit 1; }; done
for page in libweir $(sed -n 's/^WEIR_\(API\|INLINE\) [^(]*\b\(weir_[a-z_]*\)(.*/\2/p' "$weir/include/weir.h"); do [ -s "$man/man3/$page.3" ] || { echo "no page $page(3)" && exit 1; }; done
mandoc -Tlint "$man"/man[157]/*.[157] "$man/man3/libweir.3"

gcc $(pkg-config --cflags weir) "$source/examples/own_worker.c" $(pkg-config --libs weir) -o shared
gcc $(pkg-config --cflags weir) "$source/examples/own_worker.c" "$weir/lib/multiarch/libweir.a" $(pkg-config --static --libs-only-l weir | sed 's/-lweir//') -o static
weir dev >dev.log 2>&1 &
dev=$!
for _ in $(seq 600); do grep -qs 'Redis is ready' dev.log && break || sleep 0.05; done
for program in shared static; do
    said=$(./$program "unix://$folder/.weir/redis.sock" 2>$program.log | tail -n 1)
    [ "$said" = '100 greeted' ] || { echo "$program: $said" && cat $program.log && exit 1; }
done

cd "$source"
make_it uninstall
left=$(find "$folder/root" ! -type d)
[ -z "$left" ] || { echo "make uninstall leaves:" $left && exit 1; }
