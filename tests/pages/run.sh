#!/bin/sh
# make test-pages: installs Node.js, Chromium and playwright-core where they are missing, and runs run.js. Where they cannot be had it
# is skipped with one line, unless WEIR_PAGES=required.
set -eu

folder=$BUILD/pages
skip() {
    echo "test-pages: skipped: $1" >&2
    [ "${WEIR_PAGES:-}" != required ]
    exit
}

core/deps.sh pages || skip 'Node.js or Chromium cannot be installed'
mkdir -p "$folder"
if ! cmp -s tests/pages/package.json "$folder/package.json" || [ ! -d "$folder/node_modules/playwright-core" ]; then
    cp tests/pages/package.json "$folder"
    (cd "$folder" && npm install --silent --no-audit --no-fund --no-package-lock) || skip 'npm cannot install playwright-core'
fi
NODE_PATH=$folder/node_modules WEIR=$BUILD/weir exec node tests/pages/run.js
