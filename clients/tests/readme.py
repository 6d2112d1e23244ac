"""The README of a client, run as a test. A block of code whose first line is a comment with a file's name is that file. In a block
"console", "$ command" is followed by what it prints; "..." stands for any text, also of several lines. One shell runs all."""
import os
import re
import subprocess

from stage import WEIR

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
FILE = re.compile(r"(?:#|//) ([\w./-]+\.\w+)\n")


def steps(block):
    """Yields each command with what it prints."""
    for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
        command, _, expected = part.partition("\n")
        yield command, expected


def matches(printed, expected):
    pattern = ".*?".join(re.escape(part) for part in re.sub(r" +", " ", expected).split("..."))
    return re.fullmatch(pattern, re.sub(r" +", " ", printed), re.S)


def run(stage, path, env):
    env = {**stage.env(), **env, "PATH": f"{os.path.dirname(WEIR)}:/usr/bin:{os.environ['PATH']}"}
    with open(path) as file:
        text = file.read()
    for language, block in BLOCK.findall(text):
        name = FILE.match(block)
        if name:
            with open(os.path.join(stage.folder, name[1]), "w") as file:
                file.write(block)
        if language != "console":
            continue
        for command, expected in steps(block):
            done = subprocess.run(["bash", "-c", command], cwd=stage.folder, env=env, text=True, timeout=100, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            assert matches(done.stdout, expected), f"$ {command}\n{done.stdout}\n--- instead of\n{expected}"
