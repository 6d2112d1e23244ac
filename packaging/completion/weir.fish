# fish completion of weir: weir help --complete says what may stand next; where it says nothing, files may.
function __weir_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found ($words[1] help --complete -- $words[2..-1] 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c weir -f -k -a '(__weir_complete)'
