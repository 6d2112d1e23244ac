"""The vectors of the protocol (tests/protocol/README.md), carried by a client as they are: to Redis, to weir serve, to the test mode."""
import glob
import json
import os

from stage import ROOT

FOLDER = os.environ.get("VECTORS", os.path.join(ROOT, "tests", "protocol"))


def files():
    return sorted(glob.glob(os.path.join(FOLDER, "*.json")))


def text_of(parts):
    """Joins what stands one behind the other. None: bytes that are no text, which no client can make."""
    if isinstance(parts, str):
        return parts
    if any(isinstance(part, dict) for part in parts):
        return None
    return "".join(part if isinstance(part, str) else part[0] * part[1] for part in parts)


def ask(q, verb, text):
    """A cursor alone is no answer yet."""
    answer = q("call", verb=verb, text=text)
    while set(answer) == {"cursor"}:
        answer = q("call", verb=verb, text=json.dumps({**json.loads(text), **answer}))
    return answer


def differs(answer, out):
    for name, value in out.items():
        if name not in answer or answer[name] != value and not (isinstance(value, str) and value.startswith("<")):
            return name


def run(path, stage, q, way):
    with open(path) as file:
        steps = json.load(file)["steps"]
    wrong, kept = [], {}
    for step in steps:
        if "limit" in step:
            q("set_rate", name=step["limit"], rules=step["rules"]) if way == "fake" else stage.weir("rate", "set", step["limit"], *step["rules"].split())
        elif "body" in step and way == "fake":  # the bytes are Redis's; here the job is the same
            kept = kept or {job["id"]: job for job in q("jobs", type=None)}
            if kept.pop(step["body"], None) != json.loads(text_of(step["is"])):
                wrong.append(f"the job {step['body']} is another one")
        elif "verb" in step and text_of(step["in"]) is not None:
            kept = {}
            answer, out = ask(q, step["verb"], text_of(step["in"])), step["out"]
            if way == "fake":  # its words are its own
                out = {name: value for name, value in out.items() if name != "why"}
            name = differs(answer, out)
            if name:
                wrong.append(f"{step['verb']} {str(step['in'])[:300]}\n    {answer}\n    instead of {name} of {out}")
    assert not wrong, f"{len(wrong)} of {len(steps)} steps:\n" + "\n".join(wrong)
