"""RQ, by its SimpleWorker, which runs jobs without a process each. It has no limits."""
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import record


def U(job):
    record.record(job)


if __name__ == "__main__":
    from redis import Redis
    from rq import Queue

    way, port = sys.argv[1:3]
    if way == "work":
        os.environ["PYTHONPATH"] = os.path.dirname(os.path.abspath(__file__))
        os.execvp("rq", ["rq", "worker", "-q", "-w", "rq.worker.SimpleWorker", "-u", f"redis://127.0.0.1:{port}/0", "q"])
    queue, begun, n = Queue("q", connection=Redis(port=int(port))), time.time(), int(sys.argv[3])
    if way == "enqueue":
        for i in range(0, n, 1000):
            queue.enqueue_many([Queue.prepare_data("rq_client.U", args=(record.job("U", j, begun),), result_ttl=0)
                                for j in range(i, min(n, i + 1000))])
        print(time.time() - begun)
    else:
        record.pace(n, float(sys.argv[4]),
                    lambda i: queue.enqueue_call("rq_client.U", args=(record.job("U", i, time.time()),), result_ttl=0))
