#!/bin/sh
# Writes the help texts as C: help.sh cli/help/NAME.txt ... > help.c
set -eu

echo '#include "cli/help.h"'
echo 'const struct help_text help_texts[] = {'
for file in "$@"; do
    echo "    {\"$(basename "$file" .txt)\","
    sed 's/\\/\\\\/g; s/"/\\"/g; s/^/     "/; s/$/\\n"/' "$file"
    echo '    },'
done
echo '    {0, 0}};'
