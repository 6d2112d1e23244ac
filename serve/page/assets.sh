#!/bin/sh
# Writes what stands below /assets/ as C: assets.sh serve/page/style.css ... > assets.c
set -eu

echo '#include "serve/page/page.h"'
echo 'extern const struct page_asset page_assets[];'
echo 'const struct page_asset page_assets[] = {'
for file in "$@"; do
    case $file in
    *.css) type=text/css ;;
    *.js) type=text/javascript ;;
    *.svg) type=image/svg+xml ;;
    esac
    echo "    {\"$(basename "$file")\", \"$type; charset=utf-8\","
    sed 's/\\/\\\\/g; s/"/\\"/g; s/^/     "/; s/$/\\n"/' "$file"
    echo '    },'
done
echo '    {0, 0, 0}};'
