#!/usr/bin/python3
"""make bench-peers: the same work through Weir and through other queues, in one run, in turns.

usage: run.py BUILD [--peers NAME,...] [--rows NAME,...] [--repeats N] [--json FILE]

Each row starts a server of its own on loopback and ends it. All rows of a peer are
repeated, with the other peers between; the table has medians, and behind rates the smallest and the largest. --json: each
single measurement, a line each.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time

import harness
import peers
from harness import Trouble

WARM_UP_S, THROTTLED_S, RATE = 4, 15, 100
BACKLOG, UNLIMITED, BEHIND_RATE, BEHIND_S = 20_000, 1_000, 10, 40


class Run:
    """One peer: what its rows call."""

    def __init__(self, peer):
        self.peer = peer
        self.env = dict(os.environ, NODE_PATH=os.path.join(peer.build, "node_modules"), PYTHONDONTWRITEBYTECODE="1", C_FORCE_ROOT="1")

    def server(self):
        return harness.Server(self.peer.server)

    def call(self, server, *words):
        done = subprocess.run([*self.peer.client, words[0], str(server.port), *map(str, words[1:])], env=self.env,
                              capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            raise Trouble(f"{words[0]}: {(done.stderr.strip().splitlines() or [done.returncode])[-1]}")
        return done.stdout

    def enqueue(self, server, n, type_):
        """Returns the seconds."""
        return float(self.call(server, "enqueue", n, type_))

    def workers(self, server, count=1, rate="-"):
        return harness.Workers([*self.peer.client, "work", str(server.port), str(self.peer.concurrency), rate], count, self.env)

    def rate(self, per_second):
        rate = self.peer.rate(per_second)
        if rate is None:
            raise Trouble(self.peer.no_rate)
        return rate


# ---- Rows: each returns its figures, or raises Trouble


def row_enqueue(run):
    n = run.peer.enqueues
    with run.server() as server:
        memory, cpu = server.memory(), server.cpu()
        seconds = run.enqueue(server, n, "U")
        return {"jobs_s": n / seconds, "server_us": (server.cpu() - cpu) / n * 1e6, "bytes": (server.memory() - memory) / n}


def row_run(run, workers=1):
    n = run.peer.jobs
    with run.server() as server:
        run.enqueue(server, n, "U")
        cpu = server.cpu()
        with run.workers(server, workers) as crew:
            if not crew.wait(n, 60):
                n = crew.count()
            used = server.cpu() - cpu
            return {"jobs_s": harness.steady_rate([r[0] for r in crew.records()]), "server_us": used / max(n, 1) * 1e6}


def row_run2(run):
    return row_run(run, 2)


def sparse(run, rate):
    n, first = max(200, 2 * rate), 20
    with run.server() as server, run.workers(server) as crew:
        time.sleep(run.peer.settle)
        cpu = server.cpu()
        run.call(server, "pace", n + first, rate)
        crew.wait(n + first, 10)
        used, found = server.cpu() - cpu, crew.records()[first:]
    if len(found) < n:
        raise Trouble(f"{len(found)} of {n} jobs ran")
    late = [(start - sent) * 1000 for start, sent, _ in found]
    return {"p50_ms": harness.percentile(late, 50), "p99_ms": harness.percentile(late, 99), "server_us": used / (n + first) * 1e6}


def row_sparse200(run):
    return sparse(run, 200)


def row_sparse1000(run):
    return sparse(run, 1000)


def row_throttled(run):
    rate = run.rate(RATE)
    with run.server() as server:
        run.enqueue(server, BACKLOG, "T")
        with run.workers(server, 2, rate) as crew:
            time.sleep(WARM_UP_S + run.peer.settle)
            crew.check()
            begun, cpu = time.time(), server.cpu()
            time.sleep(THROTTLED_S)
            ended, used = time.time(), server.cpu() - cpu
            starts = [r[0] for r in crew.records() if begun <= r[0] < ended]
    if not starts:
        raise Trouble("no job ran")
    return {"kept": len(starts) / (ended - begun) / RATE, "most_1s": harness.most_within(starts, 1),
            "most_100ms": harness.most_within(starts, 0.1), "server_us": used / len(starts) * 1e6}


def row_behind(run):
    rate = run.rate(BEHIND_RATE)
    with run.server() as server:
        run.enqueue(server, BACKLOG, "T")
        run.enqueue(server, UNLIMITED, "U")
        with run.workers(server, 2, rate) as crew:
            until = time.time() + BEHIND_S
            unlimited = []
            while time.time() < until and len(unlimited) < UNLIMITED:
                time.sleep(0.1)
                crew.check()
                found = crew.records()
                unlimited = [r[0] for r in found if not r[2]]
    return {"done": len(unlimited), "all_after_s": unlimited[-1] - found[0][0] if len(unlimited) == UNLIMITED else None}


ROWS = {name[4:]: row for name, row in list(globals().items()) if name.startswith("row_")}
TITLES = {
    "enqueue": "bulk enqueue", "run": "run no-op jobs, one worker", "run2": "run no-op jobs, two workers",
    "sparse200": "jobs one by one, 200/s", "sparse1000": "jobs one by one, 1,000/s",
    "throttled": f"two workers, {RATE}/s, {BACKLOG:,} wait", "behind": f"{UNLIMITED:,} unlimited jobs behind {BACKLOG:,} at {BEHIND_RATE}/s",
}


# ---- The table


def say(row, figures):
    """A row's cell: figures are lists, of each repeat."""
    def middle(name):
        values = [v for v in figures[name] if v is not None]
        return statistics.median(values) if values else None

    def spread(name):
        return f" ({min(figures[name]):,.0f} to {max(figures[name]):,.0f})" if len(figures[name]) > 1 else ""

    if row == "behind":
        after = middle("all_after_s")
        return f"{middle('done'):,.0f} after {BEHIND_S} s" if after is None else f"all after {after:.2f} s"
    if row == "throttled":
        return f"{middle('kept'):.3f} kept; {middle('most_1s'):.0f} in 1 s, {middle('most_100ms'):.0f} in 100 ms; {middle('server_us'):,.0f} µs"
    if row.startswith("sparse"):
        return f"{middle('p50_ms'):.2f} / {middle('p99_ms'):.2f} ms; {middle('server_us'):,.0f} µs"
    text = f"{middle('jobs_s'):,.0f}/s{spread('jobs_s')}; {middle('server_us'):.1f} µs"
    return text + f"; {middle('bytes'):,.0f} bytes" if row == "enqueue" else text


def print_table(found, names, rows):
    print("\nSparse: p50 and p99 from sending a job to its start. µs: CPU of the server for a job. Throttled: the part of the rate that was"
          "\nkept, and the most starts within any 1 s and any 100 ms. Bytes: memory of the server for a waiting job.\n")
    print(f"| | {' | '.join(TITLES[row] for row in rows)} |\n|{' --- |' * (len(rows) + 1)}")
    for name in names:
        cells = []
        for row in rows:
            got = found[row, name]
            good = [g for g in got if "trouble" not in g]
            cells.append(say(row, {k: [g[k] for g in good] for k in good[0]}) if good else got[0]["trouble"])
        print(f"| {name} | {' | '.join(cells)} |")


def choose(text, known, what):
    chosen = text.split(",") if text else list(known)
    for name in chosen:
        if name not in known:
            sys.exit(f"bench-peers: --{what} {name}: there is none; known: {', '.join(known)}")
    return chosen


def main():
    ask = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1][7:], add_help=False)
    ask.add_argument("build")
    for flag, default in (("--peers", ""), ("--rows", ""), ("--repeats", "3"), ("--json", os.devnull)):
        ask.add_argument(flag, default=default)
    given = ask.parse_args()
    names, rows = choose(given.peers, peers.ALL, "peers"), choose(given.rows, ROWS, "rows")
    chosen = [peers.ALL[name](os.path.abspath(given.build)) for name in names]
    found = {}
    print(time.strftime("%Y-%m-%d %H:%M"), platform.platform(), f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.2f}")
    for peer in chosen:
        print(f"{peer.name} {peer.version}: {peer.note}")
    with open(given.json, "a") as out:
        for _ in range(int(given.repeats)):
            for row in rows:
                for peer in chosen:
                    try:
                        figures = ROWS[row](Run(peer))
                    except (Trouble, subprocess.TimeoutExpired, ValueError, OSError) as e:
                        figures = {"trouble": str(e)}
                    found.setdefault((row, peer.name), []).append(figures)
                    print(json.dumps({"row": row, "peer": peer.name, **figures}), file=out, flush=True)
                    print(f"{row} {peer.name}: {figures}", file=sys.stderr, flush=True)
    print_table(found, names, rows)


if __name__ == "__main__":
    main()
