"""Celery on Redis, one job at a time (-P solo), the fastest of its pools here. RATE: rate_limit of a task, which each worker keeps alone."""
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import record
from celery import Celery

way, port = sys.argv[1:3] if sys.argv[1] in ("enqueue", "pace", "work") else ("task", os.environ["PEER_PORT"])
app = Celery("q", broker=f"redis://127.0.0.1:{port}/0")
app.conf.update(task_ignore_result=True, worker_prefetch_multiplier=100, worker_hijack_root_logger=False,
                worker_send_task_events=False, task_send_sent_event=False)
rate = os.environ.get("PEER_RATE", "-")


@app.task(name="U", ignore_result=True)
def U(job):
    record.record(job)


@app.task(name="T", ignore_result=True, rate_limit=None if rate == "-" else rate)
def T(job):
    record.record(job)


if way == "enqueue":
    n, task = int(sys.argv[3]), {"U": U, "T": T}[sys.argv[4]]
    with app.producer_pool.acquire(block=True) as producer:
        begun = time.time()
        for i in range(n):  # it has no call for many
            task.apply_async((record.job(sys.argv[4], i, begun),), producer=producer)
        print(time.time() - begun)
elif way == "pace":
    with app.producer_pool.acquire(block=True) as producer:
        record.pace(int(sys.argv[3]), float(sys.argv[4]),
                    lambda i: U.apply_async((record.job("U", i, time.time()),), producer=producer))
elif way == "work":
    os.environ.update(PEER_PORT=port, PEER_RATE=sys.argv[4], PYTHONPATH=os.path.dirname(os.path.abspath(__file__)))
    os.execvp(sys.executable, [sys.executable, "-m", "celery", "-A", "celery_client", "worker", "-P", "solo", "-l", "ERROR",
                               "--without-gossip", "--without-mingle", "--without-heartbeat", "-n", f"w{os.getpid()}@h"])
