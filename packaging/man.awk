# Writes man1/weir.1, man1/weir-COMMAND.1 and man5/weir.conf.5 from doc/cli.md, which weir help --markdown prints:
#   awk -v dir=build/man -v version=0.1.0 -v date=2026-11-28 -f packaging/roff.awk -f packaging/man.awk doc/cli.md

function begin(name, what, section) {
    if (page)
        close(page)
    page = dir "/man" section "/" name "." section
    put(".TH " toupper(name) " " section " " date " \"Weir " version "\" \"Weir\"")
    put(".SH NAME")
    put(text(name " - " tolower(substr(what, 1, 1)) substr(what, 2)))
}

# "  -q, --queues Q1,Q2   what it is", and what stands below it.
function flag_out(line) {
    if (line ~ /^  (-.,|   ) --/) {
        split_at = substr(line, 27, 2) == "  " ? 28 : 100
        put(".TP")
        line_of_flag = substr(line, 1, split_at)
        gsub(/^ +| +$/, "", line_of_flag)
        put(".B " text(line_of_flag))
        line = substr(line, split_at + 1)
    }
    gsub(/^ +/, "", line)
    if (line != "")
        put(text(line))
}

# What stands in a block from that line on, and its flags.
function body_out(title, from, i, in_flags, in_form) {
    for (i = from; i <= block_count[title]; i++)
        if (blocks[title, i] ~ /^Flags/) {
            in_flags = 1
            if (!is_page(title))
                heading("SH", "OPTIONS")
        } else if (in_flags)
            flag_out(blocks[title, i])
        else if (is_form(title, i)) {
            heading("SS", blocks[title, i])
            in_form = 1
        } else
            line_out(in_form ? substr(blocks[title, i], 3) : blocks[title, i])
    end_block()
}

function command_out(name, i, forms) {
    begin("weir-" name, summary[name], 1)
    put(".SH SYNOPSIS")
    for (i = 2; i <= block_count[name]; i++)
        if (is_form(name, i))
            put((forms++ ? ".br\n" : "") "\\fB" text(blocks[name, i]) "\\fP")
    heading("SH", "DESCRIPTION")
    body_out(name, 3)
    put(".SH \"SEE ALSO\"\n.BR weir (1)\nhas the flags of every command and the exit codes.")
}

function is_page(title) { return title == "connection" || title == "weir.conf" }

# What a file may say; the names of each section stand below its heading.
function file_out() {
    begin("weir.conf", "what commands and workers of Weir read: Redis, handlers, limits", 5)
    heading("SH", "DESCRIPTION")
    body_out("weir.conf", 5)
    heading("SH", "FILES")
    put(".I /etc/weir/weir.conf\n.br\n.I \\(ti/.config/weir/weir.conf")
    put(".SH \"SEE ALSO\"\n.BR weir (1),\n.BR weir\\-config (1),\n.BR weir\\-worker (1)")
}

# "weir rate set NAME RULE...", behind an empty line or another form.
function is_form(title, i) {
    return !is_page(title) && index(blocks[title, i] " ", "weir " title " ") == 1 && (blocks[title, i - 1] == "" || is_form(title, i - 1))
}

function overview_out(    i) {
    begin("weir", "a job queue on Redis; workers hold each type of task to its rate, exactly", 1)
    put(".SH SYNOPSIS\n.B weir\n.I COMMAND\n[\\fIARGUMENTS\\fP] [\\fIFLAGS\\fP]")
    heading("SH", "DESCRIPTION")
    put("Each command has a page of its own, and")
    put(".B weir help\n.I COMMAND\nprints the same.")
    for (i = 1; i <= commands; i++)
        put(".TP\n.BR weir\\-" command[i] " (1)\n" text(summary[command[i]] "."))
    heading("SH", "OPTIONS")
    for (i = 1; i <= block_count["flags"]; i++)
        flag_out(blocks["flags", i])
    heading("SH", "CONNECTION")
    body_out("connection", 5)
    heading("SH", "EXIT STATUS")
    put(text(exits))
    heading("SH", "ENVIRONMENT")
    put(".TP\n.B REDIS_URL\nwhere Redis is, unless\n.B \\-\\-redis\nsays it.")
    put(".TP\n.B WEIR_CONFIG\na file in place of those of\n.BR weir.conf (5).")
    put(".TP\n.B WEIR_NAMESPACE\nwhat all keys begin with, unless\n.B \\-\\-namespace\nsays it.")
    put(".TP\n.BR WEIR_LOG , \" WEIR_LOG_FORMAT\"\nlevel and format of the log of commands that stay.")
    put(".SH \"SEE ALSO\"\n.BR weir.conf (5),\n.BR libweir (3)")
}

/^`weir help COMMAND` prints the same\. / { sub(/.*Exit codes: /, ""); exits = $0; in_exits = 1; next }
in_exits && /^$/ { in_exits = 0 }
in_exits { exits = exits " " $0 }
/^## Flags of every command/ { title = "flags" }
/^## weir / { title = $NF }
/^```text/ { inside = 1; next }
/^```/ { inside = 0 }
inside { blocks[title, ++block_count[title]] = $0 }
inside && block_count[title] == 1 && title != "flags" && !is_page(title) {
    command[++commands] = title
    summary[title] = $0
    sub(/\.$/, "", summary[title])
}

END {
    overview_out()
    file_out()
    for (c = 1; c <= commands; c++)
        command_out(command[c])
}
