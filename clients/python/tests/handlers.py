"""What the story's workers run: clients/tests/README.md."""
import asyncio
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src"))
import weir

log = os.open(os.environ["STAGE_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def note(job, **more):
    line = {"id": job.id, "type": job.type, "args": job.args, "attempt": job.attempt, "pid": os.getpid(), **more}
    os.write(log, json.dumps(line).encode() + b"\n")


@weir.handler("story")
def story(job):
    how = job.args.get("do", "done")
    seen = os.environ["STAGE_LOG"] + "." + job.id
    first = not os.path.exists(seen)
    open(seen, "w").close()
    note(job)
    if how == "print":
        print("a stray line"), print("a stray end", end="", flush=True)
        os.system("echo from a program that it started")
    elif how == "retry" and first:
        raise weir.Retry("not yet", after=0.2)
    elif how == "kill" and first:
        os.kill(os.getpid(), 9)
    elif how == "fail":
        raise ValueError("a plain failure")
    elif how == "dead":
        raise weir.Dead("no such number")
    elif how == "throttled" and first:
        raise weir.Throttled(0.3)
    elif how == "spent":
        job.spent(3)
    elif how == "result":
        return weir.Result(job.args.get("value", "x" * 70000))
    elif how == "slow":
        time.sleep(job.args["seconds"])
        note(job, ended=True)
    elif how == "until cancelled":
        while not job.cancelled:
            time.sleep(0.01)
        note(job, ended=True)


@weir.handler("many")
def many(job):
    note(job)


@weir.handler("async")
async def slow(job):
    note(job)
    await asyncio.sleep(job.args["seconds"])
    note(job, ended=True)


@weir.handler("report")
def report(job):
    note(job)


weir.run()
