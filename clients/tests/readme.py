"""The README of a client, run as a test, by one shell. A block of code whose first line is a comment with a file's name is that file. In
a block "console", "$ command" is followed by what it prints; "..." stands for any text, also of several lines. "<!-- $ command -->" is
run, and not shown."""
import os
import re
import subprocess

from stage import WEIR

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$|^<!-- (\$ .*?) -->$", re.M | re.S)
FILE = re.compile(r"(?:#|//) ([\w./-]+\.\w+)\n")


def steps(block):
    """Yields each command with what it prints."""
    for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
        command, _, expected = part.partition("\n")
        yield command, expected


def matches(printed, expected):
    pattern = ".*?".join(re.escape(part) for part in re.sub(r" +", " ", expected).split("..."))
    return re.fullmatch(pattern, re.sub(r" +", " ", printed), re.S)


class Shell:
    def __init__(self, stage, env):
        env = {**stage.env(), **env, "PATH": f"{os.path.dirname(WEIR)}:/usr/bin:{os.environ['PATH']}"}
        del env["REDIS_URL"]
        self.process = subprocess.Popen(["timeout", "100", "bash"], cwd=stage.folder, env=env, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        stage.processes.append(self.process)

    def run(self, command):
        self.process.stdin.write(command + "\necho '~~~'\n")
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            if line == "~~~\n":
                return "".join(lines)
            lines.append(line)
        raise AssertionError(f"the shell ended at: {command}\n{''.join(lines)}")


def run(stage, path, env):
    shell = Shell(stage, env)
    with open(path) as file:
        text = file.read()
    for language, block, hidden in BLOCK.findall(text):
        name = FILE.match(block)
        if name:
            with open(os.path.join(stage.folder, name[1]), "w") as file:
                file.write(block)
        for command, expected in steps(hidden or block if hidden or language == "console" else ""):
            printed = shell.run(command)
            assert matches(printed, expected), f"$ {command}\n{printed}\n--- instead of\n{expected}"
    shell.process.stdin.close()
    shell.process.wait()
