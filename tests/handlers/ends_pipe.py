#!/usr/bin/env python3
import json, os, signal, sys, time
def say_done(*args):
    print(json.dumps({'id': 'says_done', 'status': 'done'}), flush=True)
    sys.exit()
answers = {'done': {'status': 'done'}, 'retry': {'status': 'retry', 'reason': 'no luck'},
           'retry_after': {'status': 'retry', 'after': 1000, 'reason': 'no luck'},
           'dead': {'status': 'dead', 'reason': 'no such customer'}, 'odd': {'status': 42},
           'throttled': {'status': 'throttled'}, 'throttled_after': {'status': 'throttled', 'after': 600},
           'throttled_long': {'status': 'throttled', 'after': 99999999999},
           'throttled_wrong': {'status': 'throttled', 'after': -1},
           'retry_wrong': {'status': 'retry', 'after': -1},
           'retry_long': {'status': 'retry', 'after': 1795000000, 'reason': 'no luck'}}
for line in sys.stdin:
    job = json.loads(line)
    open(job['type'] + '.begun', 'w').close()
    if job['type'] == 'crash':
        os.kill(os.getpid(), 9)
    if job['type'] == 'says_done':
        signal.signal(signal.SIGTERM, say_done)
    if job['type'] not in answers:
        time.sleep(1000)
    print(json.dumps({'id': job['id'], **answers[job['type']]}), flush=True)
