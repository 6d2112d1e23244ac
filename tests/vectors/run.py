#!/usr/bin/env python3
"""Runs the vectors of this folder against an implementation: README.md says how the two talk."""
import json
import math
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path


class Implementation:
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, document):
        self.process.stdin.write(json.dumps(document) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.process.args[0]} ended at {json.dumps(document)}")
        return json.loads(line)


def expected(step, tick):
    if "take" not in step:
        return {}
    opens = step["is"]
    if opens is True:
        return {"granted": True}
    return {"granted": False, "opens": opens if opens is None else math.ceil(Fraction(opens) / tick) * tick}


def run(implementation, vector):
    """Returns what is wrong, or None."""
    begun = implementation.ask({"begin": vector["name"], "rules": vector["rules"], "epoch": vector.get("epoch", 1795000000)})
    for step in vector["steps"]:
        answer = implementation.ask({name: value for name, value in step.items() if name != "is"})
        if answer != expected(step, begun["tick"]):
            return f"{json.dumps(step)}: expected {json.dumps(expected(step, begun['tick']))}, it is {json.dumps(answer)}"
    return None


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: run.py COMMAND [ARGUMENT...]")
    implementation, count, wrong = Implementation(sys.argv[1:]), 0, 0
    here = Path(__file__).parent
    names = os.environ.get("VECTORS", "").split() or sorted(path.stem for path in here.glob("*.json"))
    for name in names:
        for vector in json.loads((here / f"{name}.json").read_text()):
            why = run(implementation, vector)
            count, wrong = count + 1, wrong + bool(why)
            if why:
                print(f"{name}: {vector['name']}: {why}")
    print(f"{count} vectors, {wrong} wrong")
    sys.exit(wrong > 0 or count == 0)


main()
