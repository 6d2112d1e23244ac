"""What all rows of run.py share: servers of their own, clients, and what their records say.

A client is a program that is called in three ways, with the port of the server:

    CLIENT enqueue PORT N TYPE      sends N jobs as fast as its library can, prints the seconds that it took
    CLIENT pace PORT N RATE         sends N jobs of type U one by one, RATE a second
    CLIENT work PORT CONCURRENCY RATE   runs jobs until SIGTERM; RATE: of type T, "-": no limit

A job is {"type", "id", "t", "to", "body"}, 120 bytes, t: when it was sent. A worker appends a record to the file $RECORD
as it begins a job: three little-endian doubles, the time, t, and 1 for type T, else 0. It flushes every 50 ms at least.
"""
import array
import os
import signal
import socket
import subprocess
import tempfile
import time

RECORD_SIZE = 24


class Trouble(Exception):
    """A run that says nothing about the peer: one line."""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for_port(port, process):
    until = time.time() + 10
    while time.time() < until:
        if process.poll() is not None:
            raise Trouble(f"{process.args[0]} ended with {process.returncode}")
        try:
            return socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.02)
    raise Trouble(f"{process.args[0]} does not answer")


def end(process):
    """SIGTERM, and SIGKILL after 6 s. Returns the seconds of CPU that it used."""
    process.send_signal(signal.SIGTERM)
    until = time.time() + 6
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = status
            return usage.ru_utime + usage.ru_stime
        if time.time() > until:
            process.kill()
        time.sleep(0.01)


class Server:
    """A server of a row's own. argv: with {port} and {folder}; it keeps nothing on disk."""

    def __init__(self, argv):
        self.folder = tempfile.TemporaryDirectory(prefix="weir-peer-")
        self.port = free_port()
        argv = [word.format(port=self.port, folder=self.folder.name) for word in argv]
        self.process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.folder.name)
        wait_for_port(self.port, self.process)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        end(self.process)
        self.folder.cleanup()

    def cpu(self):
        """Seconds of CPU, of all its threads: in hundredths by /proc, finer by the scheduler's own count where there is one."""
        try:
            total = 0
            for task in os.listdir(f"/proc/{self.process.pid}/task"):
                with open(f"/proc/{self.process.pid}/task/{task}/schedstat") as f:
                    total += int(f.read().split()[0])
            return total / 1e9
        except OSError:
            with open(f"/proc/{self.process.pid}/stat") as f:
                words = f.read().rsplit(")", 1)[1].split()
            return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self):
        """Bytes: what Redis says that it uses; of another server what it has resident."""
        if "redis" in self.process.args[0]:
            with socket.create_connection(("127.0.0.1", self.port), 5) as s:
                s.sendall(b"INFO memory\r\n")
                text = s.recv(65536)
            return int(text.split(b"used_memory:")[1].split(b"\r\n")[0])
        with open(f"/proc/{self.process.pid}/status") as f:
            return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmRSS"))


class Workers:
    """Processes that run jobs, each with a file of records."""

    def __init__(self, argv, count, env):
        self.folder = tempfile.TemporaryDirectory(prefix="weir-records-")
        self.files = [os.path.join(self.folder.name, str(i)) for i in range(count)]
        self.log = open(os.path.join(self.folder.name, "log"), "w+b")
        self.processes = []
        for path in self.files:
            open(path, "wb").close()
            self.processes.append(subprocess.Popen(argv, env=dict(env, RECORD=path), cwd=self.folder.name,
                                                   stdout=self.log, stderr=self.log))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            end(process)
        self.log.close()
        self.folder.cleanup()

    def count(self):
        return sum(os.path.getsize(path) for path in self.files) // RECORD_SIZE

    def check(self):
        for process in self.processes:
            if process.poll() is not None:
                self.log.seek(0)
                said = self.log.read().decode(errors="replace").strip().splitlines()
                raise Trouble(f"a worker ended: {said[-1] if said else process.returncode}")

    def wait(self, n, seconds):
        """True: n jobs have begun within that time."""
        until = time.time() + seconds
        while self.count() < n:
            if time.time() > until:
                return False
            self.check()
            time.sleep(0.02)
        return True

    def records(self):
        """(start, sent, is of type T), by their starts."""
        found = []
        for path in self.files:
            with open(path, "rb") as f:
                numbers = array.array("d")
                data = f.read()
                numbers.frombytes(data[:len(data) // RECORD_SIZE * RECORD_SIZE])
            found += zip(numbers[0::3], numbers[1::3], numbers[2::3])
        return sorted(found)


def most_within(times, span):
    """The most of these sorted times that lie within any half-open window of that span."""
    most = first = 0
    for i, t in enumerate(times):
        while times[first] <= t - span:
            first += 1
        most = max(most, i - first + 1)
    return most


def steady_rate(times):
    """A second, between the 10th and the 90th percentile of sorted times."""
    a, b = len(times) // 10, len(times) * 9 // 10
    if b <= a or times[b] <= times[a]:
        raise Trouble("too few jobs ran")
    return (b - a) / (times[b] - times[a])


def percentile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * p / 100))]
