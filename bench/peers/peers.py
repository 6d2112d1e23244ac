"""The queues that run.py measures: how their servers and clients are called, and what they cannot do."""
import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
CLIENTS = os.path.join(HERE, "clients")
REDIS = ["redis-server", "--port", "{port}", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", "{folder}"]


def _said(argv, word=-1):
    """The version that a program or a package manager prints."""
    try:
        return subprocess.run(argv, capture_output=True, text=True, timeout=20).stdout.split()[word]
    except (OSError, IndexError, subprocess.TimeoutExpired):
        return "?"


def _debian(package):
    return _said(["dpkg-query", "-W", "-f", "${Version}", package]).split("-")[0]


class Peer:
    """client: argv before "enqueue", "pace" and "work". concurrency: jobs at once that a worker of its kind is usually given.
    rates: what its client takes as RATE for so many a second, or why it cannot hold one. settle: seconds until a worker
    is up. jobs: of the rows that run as many as they can."""

    server, concurrency, settle, jobs, enqueues = REDIS, 100, 1.5, 100_000, 100_000
    version, note, no_rate = "?", "", "no limits"

    def __init__(self, build):
        self.build = build
        self.client = [os.path.join(build, self.name)]

    def rate(self, per_second):
        return None


class Weir(Peer):
    name, note, settle, jobs, enqueues = "weir", "100 executors", 0.5, 500_000, 500_000

    def __init__(self, build):
        super().__init__(build)
        self.version = _said([os.path.join(build, "..", "weir"), "--version"])

    def rate(self, per_second):
        return f"{per_second}/s,burst=10"


class _Node(Peer):
    def __init__(self, build):
        super().__init__(build)
        self.client = ["node", os.path.join(CLIENTS, f"{self.name}.js")]
        package = os.path.join(build, "node_modules", self.name, "package.json")
        self.version = _said(["node", "-p", f"require('{package}').version"])


class BullMQ(_Node):
    name, note = "bullmq", "concurrency 100; its limiter: a tenth of the rate in each 100 ms"

    def rate(self, per_second):
        return f"100/{max(1, per_second // 10)}"


class BeeQueue(_Node):
    name, note = "bee-queue", "concurrency 100"


class Beanstalkd(Peer):
    name, note, settle = "beanstalkd", "a client in C, 100 reserves at once; no binlog", 0.5
    server, version = ["beanstalkd", "-l", "127.0.0.1", "-p", "{port}"], _debian("beanstalkd")


class Gearmand(Peer):
    name, note, settle = "gearmand", "libgearman, a job at a time; in memory", 0.5
    server = ["gearmand", "-L", "127.0.0.1", "-p", "{port}", "-l", "{folder}/log"]
    version = _debian("gearman-job-server")


class Sidekiq(Peer):
    name, note, concurrency, settle, jobs = "sidekiq", "10 threads; limits are paid for: a GCRA in the job, perform_in", 10, 3, 30_000
    version = _debian("ruby-sidekiq")

    def __init__(self, build):
        super().__init__(build)
        self.client = ["ruby", os.path.join(CLIENTS, "sidekiq_client.rb")]

    def rate(self, per_second):
        return str(per_second)


class Celery(Peer):
    name, note, concurrency, settle = "celery", "-P solo; rate_limit is kept by each worker alone", 1, 4
    jobs, enqueues, version = 10_000, 10_000, _debian("python3-celery")

    def __init__(self, build):
        super().__init__(build)
        self.client = ["/usr/bin/python3", os.path.join(CLIENTS, "celery_client.py")]

    def rate(self, per_second):
        return f"{per_second}/s"


class RQ(Peer):
    name, note, concurrency, settle = "rq", "SimpleWorker", 1, 3
    jobs, enqueues, version = 3_000, 10_000, _debian("python3-rq")

    def __init__(self, build):
        super().__init__(build)
        self.client = ["/usr/bin/python3", os.path.join(CLIENTS, "rq_client.py")]


ALL = {peer.name: peer for peer in (Weir, BullMQ, BeeQueue, Beanstalkd, Gearmand, Sidekiq, Celery, RQ)}
