"""Runs the tests of the clients: tests/run.py [LANGUAGE...]; CASES='*bulk*' runs some. Two are run at a time; the last line is
"N passed, N failed"."""
import fnmatch
import os
import shutil
import subprocess
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

import compare
import readme
import story
import vectors
from stage import ROOT, Adapter, Stage, free_port

BUILT = os.path.join(ROOT, os.environ.get("BUILD", "build"), "clients", "go", "")
ADAPTER = "cd adapter && GOWORK=$PWD/go.work"

# Of each: how its adapter and its handlers are built and started, its own tests, and the ways to connect that its adapter knows.
LANGUAGES = {
    "python": {"adapter": ["/usr/bin/python3", "adapter.py"], "handlers": "/usr/bin/python3 {}/handlers.py", "ways": ["", "async"],
               "own": ["/usr/bin/python3", "-m", "unittest", "-q"], "async": True,
               "example": ["/usr/bin/python3", "-m", "unittest", "-q", "test_summary"],
               "env": {"PYTHONPATH": ROOT + "/clients/python/src", "PYTHONDONTWRITEBYTECODE": "1"}},
    "node": {"adapter": ["/usr/bin/node", "adapter.mjs"], "handlers": "/usr/bin/node {}/handlers.mjs", "ways": ["", "redis"],
             "own": ["/usr/bin/node", "--test", "weir.test.mjs"], "async": True, "link": "node_modules/weir-queue",
             "example": ["/usr/bin/node", "--test"]},
    "ruby": {"adapter": ["/usr/bin/ruby", "adapter.rb"], "handlers": "/usr/bin/ruby {}/handlers.rb", "ways": [""],
             "own": ["/usr/bin/ruby", "test_weir.rb"], "env": {"RUBYLIB": ROOT + "/clients/ruby/lib"}},
    # go.work puts Debian's redigo beside the module, so that nothing is fetched; of the adapter, two more that lack a go.mod there.
    "go": {"build": ["sh", "-c", f"go build -o {BUILT} ./handlers && {ADAPTER} go build -overlay overlay.json -o {BUILT} ."],
           "adapter": [BUILT + "adapter"], "handlers": BUILT + "handlers", "ways": [""],
           "own": ["sh", "-c", f'test -z "$(gofmt -l ..)" && go vet ../... && go test ../... && {ADAPTER} go vet -overlay overlay.json .'],
           "env": {"GOWORK": ROOT + "/clients/go/tests/go.work", "GOPROXY": "off"}},
}
# What a way to connect does not touch is run once.
ONCE = (story.handlers, story.lines_and_deaths, story.several_at_a_time_and_stopping, story.cancelling, story.test_mode)
# What a library cannot do: node-redis 4 knows no Sentinel.
WITHOUT = {("node", "redis", story.through_sentinels)}


def command(folder, command, env):
    done = subprocess.run(command, cwd=folder, env={**os.environ, **env}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def starter(stage, language, folder, way):
    """Returns what starts an adapter of the language, connected."""
    words = [word if word.startswith("/") or "." not in word else os.path.join(folder, word) for word in language["adapter"]]

    def start(**where):
        q = Adapter(stage, words)
        q("connect", **({"way": way} if way else {}), **{"url": stage.url, **where})
        return q

    return start


def link(language, folder, at):
    """Puts the package where the programs of a folder look for it."""
    place = os.path.join(at, language.get("link", "."))
    if not os.path.lexists(place):
        os.makedirs(os.path.dirname(place), exist_ok=True)
        os.symlink(os.path.dirname(folder), place)


def tell_readme(language, folder):
    with Stage() as stage:
        link(language, folder, stage.folder)
        readme.run(stage, os.path.join(folder, "..", "README.md"), language.get("env", {}))


def tell_example(name, language, folder):
    """The README of an application, in a copy that listens at a port of its own."""
    with Stage() as stage:
        app = os.path.join(stage.folder, "examples", name)
        shutil.copytree(os.path.join(ROOT, "examples", name), app, symlinks=True)
        port = str(free_port())
        for entry in os.scandir(app):
            if entry.is_file():
                with open(entry, "r+") as file:
                    text = file.read().replace("8080", port)
                    file.seek(0)
                    file.write(text)
                    file.truncate()
        readme.run(stage, os.path.join(app, "README.md"), language.get("env", {}))


def vector(language, folder, path, way):
    with Stage() as stage:
        start = starter(stage, language, folder, "fake" if way == "fake" else "")
        if way != "fake":
            stage.begin()
        q = start(url=stage.serve("--allow-enqueue", "--allow-actions")) if way == "serve" else start()
        vectors.run(path, stage, q, way)


def random_documents(language, folder):
    with Stage() as stage:
        stage.begin()
        compare.run(stage, starter(stage, language, folder, "")(), starter(stage, language, folder, "fake")())


def tell(case, language, folder, way):
    with Stage() as stage:
        stage.begin()
        stage.handlers, stage.has_async = language["handlers"].format(folder), language.get("async", False)
        try:
            case(stage, starter(stage, language, folder, way))
        except Exception as e:
            logs = [f"{log}: {line}" for log in ("worker.log", "adapter.log", "serve.log") for line in stage.read(log).splitlines()[-12:]]
            raise AssertionError("\n".join(logs)) from e


def checks(name, language):
    """Yields the name of each test with its function and arguments."""
    folder, env = os.path.join(ROOT, "clients", name, "tests"), language.get("env", {})
    if not os.path.isdir(folder) or len(sys.argv) > 1 and name not in sys.argv[1:]:
        return
    if "build" in language:
        command(folder, language["build"], env)
    yield f"{name}/own", command, folder, language["own"], env
    if "example" in language:
        link(language, folder, os.path.join(ROOT, "examples", name))
        yield f"{name}/example", command, os.path.join(ROOT, "examples", name), language["example"], env
        yield f"{name}/example_readme", tell_example, name, language, folder
    yield f"{name}/readme", tell_readme, language, folder
    for path in vectors.files():
        for way in ("redis", "serve", "fake"):
            yield f"{name}/vectors/{os.path.basename(path)[:-5]}/{way}", vector, language, folder, path, way
    yield f"{name}/random", random_documents, language, folder
    for way in language["ways"]:
        for case in story.CASES:
            if (way == "" or case not in ONCE) and (name, way, case) not in WITHOUT:
                yield f"{name}{'/' + way if way else ''}/{case.__name__}", tell, case, language, folder, way


def run(name, function, *arguments):
    begin = time.monotonic()
    try:
        function(*arguments)
    except Exception:
        return f"{traceback.format_exc()}{name}: FAILED"
    print(f"{name}: passed in {time.monotonic() - begin:.1f} s", flush=True)
    return None


pattern = os.environ.get("CASES", "*")
todo = [check for name, language in LANGUAGES.items() for check in checks(name, language) if fnmatch.fnmatch(check[0], pattern)]
with ThreadPoolExecutor(2) as pool:
    failures = [failure for failure in pool.map(lambda check: run(*check), todo) if failure]
print("\n".join([*failures, f"{len(todo) - len(failures)} passed, {len(failures)} failed"]))
sys.exit(bool(failures))
