# bash completion of weir: weir help --complete says what may stand next; where it says nothing, files may.
_weir() {
    local word words=() glued='' i start
    for ((i = 1; i <= COMP_CWORD; i++)); do # bash takes --flag=value, and host:pid, for three words
        word=${COMP_WORDS[i]}
        if [[ ($word == [=:] || $glued) && ${#words[@]} -gt 0 ]]; then words[-1]+=$word; else words+=("$word"); fi
        [[ $word == [=:] ]] && glued=yes || glued=''
    done
    start=${words[-1]%"${words[-1]##*[=:]}"}
    COMPREPLY=()
    while IFS=$'\t' read -r word _; do
        COMPREPLY+=("${word#"$start"}")
    done < <("$1" help --complete -- "${words[@]}" 2>/dev/null)
    [[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace 2>/dev/null
}
complete -o default -F _weir weir
