#!/usr/bin/env python3
"""A handler in Python: weir worker --pipe 'sms=examples/handler.py'

One job a line comes in, one answer a line goes out; standard error goes to the worker's log.
Try it: weir enqueue sms '{"to": "+4930123456", "text": "hello"}'
"""
import json
import sys


def send(number, text):
    """Stands for a provider: what it answers depends on the number."""
    return {"+0": 404, "+1": 429, "+2": 500}.get(number, 200)


def handle(job):
    status = send(job["args"]["to"], job["args"]["text"])
    if status == 429:
        return {"status": "throttled", "after": 2}  # seconds; pauses the limits of its type, uses no attempt
    if status == 404:
        return {"status": "dead", "reason": "no such number"}  # is not tried again
    if status == 500:
        return {"status": "retry", "reason": "the provider is ill"}  # "after" may say when
    return {"status": "done"}


for line in sys.stdin.buffer:
    job = json.loads(line)
    try:
        answer = handle(job)
    except Exception as e:
        answer = {"status": "retry", "reason": repr(e)}
    print(json.dumps({"id": job["id"], **answer}), flush=True)
