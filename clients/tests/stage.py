"""What the tests of all clients stand on: a private Redis, workers, weir serve, a proxy that cuts, and the adapter of a
language, which does as it is told line by line."""
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WEIR = os.path.join(ROOT, os.environ.get("BUILD", "build"), "weir")


def await_that(what, condition, most=60):
    """Waits until the condition holds, and returns its value."""
    end = time.monotonic() + most
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"waited {most} s in vain: {what}")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Stage:
    """A folder of its own with a Redis in it. Everything that was started ends with it."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="weir-clients-")
        self.path = os.path.join(self.folder, "redis.sock")
        self.url = "unix://" + self.path
        self.processes = []
        self.redis = None
        self.start_redis()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(15)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, *command, log="log", **more):
        with open(os.path.join(self.folder, log), "ab") as out:
            process = subprocess.Popen(command, stdout=out, stderr=out, cwd=self.folder, env=self.env(), **more)
        self.processes.append(process)
        return process

    def env(self):
        return {**os.environ, "REDIS_URL": self.url, "STAGE_LOG": os.path.join(self.folder, "jobs")}

    def start_redis(self):
        self.redis = self.start("redis-server", "--port", "0", "--unixsocket", self.path, "--save", "", "--appendonly", "yes",
                                "--appendfsync", "always", "--dir", self.folder, log="redis.log")
        await_that("Redis answers", lambda: self.try_redis("PING") == "PONG")

    def redis_at(self, *options, name="redis", redis_cli=()):
        """Starts another Redis, at a port of its own, and returns its process, the port and what asks it."""
        port = str(free_port())
        folder = os.path.join(self.folder, port)
        os.mkdir(folder)
        ports = ["--port", "0", "--tls-port", port] if redis_cli else ["--port", port]
        process = self.start("redis-server", *options, *ports, "--bind", "127.0.0.1", "--save", "", "--dir", folder, log=f"{name}.log")

        def ask(*words):
            return subprocess.run(["redis-cli", "-p", port, *redis_cli, *words], capture_output=True, text=True).stdout.strip()

        await_that(f"{name} answers", lambda: ask("PING") == "PONG")
        return process, port, ask

    def kill_redis(self):
        self.redis.kill()
        self.redis.wait()

    def try_redis(self, *command):
        done = subprocess.run(["redis-cli", "-s", self.path, *command], capture_output=True, text=True)
        return done.stdout.strip()

    def weir(self, *arguments, stdin=""):
        """Runs a command of weir and returns what it prints."""
        done = subprocess.run([WEIR, *arguments], input=stdin, capture_output=True, text=True, cwd=self.folder, env=self.env())
        assert done.returncode == 0, f"weir {' '.join(arguments)}: {done.returncode}: {done.stderr}"
        return done.stdout

    def begin(self):
        """Lets a worker run once, which brings Weir into this Redis."""
        self.weir("worker", "--exec", "nothing=true", "--drain")

    def worker(self, *arguments):
        process = self.start(WEIR, "worker", *arguments, log="worker.log")
        await_that("the worker runs", lambda: "msg=started" in self.read("worker.log"))
        return process

    def serve(self, *arguments):
        """Starts weir serve and returns its address."""
        port = free_port()
        self.start(WEIR, "serve", "--listen", f"127.0.0.1:{port}", *arguments, log="serve.log")

        def answers():
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port), 1).close()
                return True

        await_that("weir serve answers", answers)
        return f"http://127.0.0.1:{port}"

    def read(self, name):
        with contextlib.suppress(FileNotFoundError), open(os.path.join(self.folder, name)) as file:
            return file.read()
        return ""

    def jobs(self):
        """Returns what the handlers wrote: a document for each run."""
        return [json.loads(line) for line in self.read("jobs").split("\n") if line.endswith("}")]

    def stat(self, type, name):
        return int(self.try_redis("HGET", f"weir:{{0}}:stats:{type}", name) or 0)


class Proxy:
    """Passes bytes on to a unix socket, and cuts its first connections: behind so many bytes of the client, or (negative) instead of
    that reply of the server, counted from -1."""

    def __init__(self, stage, cuts):
        self.to, self.cuts = stage.path, list(cuts)
        self.made = 0
        self.path = os.path.join(stage.folder, f"proxy{id(self)}.sock")
        self.url = "unix://" + self.path
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.socket(socket.AF_UNIX)
            server.connect(self.to)
            self.made += 1
            cut = self.cuts.pop(0) if self.cuts else 1 << 62
            for source, sink, left, each in ((client, server, cut if cut > 0 else 1 << 62, len),
                                             (server, client, -cut if cut < 0 else 1 << 62, lambda chunk: 1)):
                threading.Thread(target=self._pass, args=(source, sink, left, each), daemon=True).start()

    @staticmethod
    def _pass(source, sink, left, each):
        with contextlib.suppress(OSError):
            while True:
                chunk = source.recv(65536)
                if not chunk or each(chunk) >= left:
                    if each is len:
                        sink.sendall(chunk[:left])
                    break
                left -= each(chunk)
                sink.sendall(chunk)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


class Refused(Exception):
    """What a client refused. kind: unreachable, refused, invalid, notfound, denied, unknown."""

    def __init__(self, answer):
        super().__init__(f"{answer['kind']}: {answer['message']}")
        self.kind, self.message = answer["kind"], answer["message"]
        self.member, self.retry_after, self.id = (answer.get(name) for name in ("member", "retry_after", "id"))


class Adapter:
    """The program clients/LANGUAGE/tests/adapter: it holds one client and does what each line says."""

    def __init__(self, stage, command):
        with open(os.path.join(stage.folder, "adapter.log"), "ab") as log:
            env = stage.env()
            del env["REDIS_URL"]  # a library that reads it may not know an address of Weir's
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=env,
                                            cwd=stage.folder)
        self.stage = stage
        stage.processes.append(self.process)

    def __call__(self, do, **arguments):
        self.tell(do, **arguments)
        return self.hear()

    def tell(self, do, **arguments):
        self.process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        self.process.stdin.flush()

    def hear(self):
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError("the adapter ended: " + self.stage.read("adapter.log")[-2000:])
        answer = json.loads(line)
        if "kind" in answer:
            raise Refused(answer)
        return answer["ok"]
