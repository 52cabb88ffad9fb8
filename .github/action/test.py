#!/usr/bin/env python3
"""Runs the steps of action.yml as a runner would, against a stand-in for GitHub on loopback: releases to download, comments to list,
write and update. Measures a short study with the unladen given.

    .github/action/test.py target/release/unladen
"""

import hashlib
import http.server
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ARCH = os.uname().machine


class GitHub(http.server.BaseHTTPRequestHandler):
    """What the steps ask of GitHub. Comments of others come first, more than one page of them."""

    files: dict = {}
    comments: list = []
    refuse = False
    log: list = []

    def answer(self, body, status=200):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        if self.path in self.files:
            return self.answer(self.files[self.path])
        asked = re.fullmatch(r"/repos/o/r/issues/7/comments\?per_page=100&page=(\d+)", self.path)
        if not asked:
            return self.answer({"message": "Not Found"}, 404)
        start = 100 * (int(asked[1]) - 1)
        return self.answer(self.comments[start : start + 100])

    def write(self, status, change):
        self.log.append(f"{self.command} {self.path}")
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.refuse or self.headers["Authorization"] != "Bearer secret":
            return self.answer({"message": "Resource not accessible by integration"}, 403)
        change(given["body"])
        return self.answer({}, status)

    def do_POST(self):
        assert self.path == "/repos/o/r/issues/7/comments", self.path
        self.write(201, lambda body: self.comments.append({"id": len(self.comments), "body": body}))

    def do_PATCH(self):
        number = int(re.fullmatch(r"/repos/o/r/issues/comments/(\d+)", self.path)[1])
        self.write(200, lambda body: self.comments[number].update(body=body))

    def log_message(self, *_):
        pass


def steps():
    """The steps of action.yml, as far as their form there goes: (name, environment, command)."""
    text = (ROOT / "action.yml").read_text()
    for block in text.split("\n    - name: ")[1:]:
        environment = dict(re.findall(r"^        ([A-Z_]+): (.*)$", block, re.M))
        yield block.splitlines()[0], environment, re.search(r"^      run: (.*)$", block, re.M)[1]


def defaults():
    """The inputs of action.yml with what they are unless given."""
    inputs = (ROOT / "action.yml").read_text().split("\ninputs:\n")[1].split("\noutputs:\n")[0]
    found = re.findall(r"^  ([a-z-]+):\n((?:    .*\n?)+)", inputs, re.M)
    return {name: (re.search(r"^    default: (.*)$", block, re.M) or [None, ""])[1].strip('"') for name, block in found}


class Runner:
    """A job: runs the steps with inputs, keeps what they leave to one another."""

    def __init__(self, server, folder):
        self.folder = folder
        event = folder / "event.json"
        event.write_text(json.dumps({"pull_request": {"number": 7}}))
        self.environment = os.environ | {
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_API_URL": server,
            "GITHUB_SERVER_URL": server,
            "GITHUB_REPOSITORY": "o/r",
            "GITHUB_RUN_ID": "42",
            "GITHUB_EVENT_PATH": str(event),
            "RUNNER_TEMP": str(folder),
        }

    def run(self, **given):
        """The exit code of the job, and what its steps said."""
        inputs = defaults() | {"repository": "o/unladen", "token": "secret"} | {k.replace("_", "-"): v for k, v in given.items()}
        said, outputs = "", {}
        for name, environment, command in steps():
            values = {}
            for key, value in environment.items():
                value = re.sub(r"\$\{\{ inputs\.([a-z-]+) \}\}", lambda it: inputs[it[1]], value)
                values[key] = re.sub(r"\$\{\{ steps\.measure\.outputs\.([a-z]+) \}\}", lambda it: outputs.get(it[1], ""), value)
            assert "${{" not in str(values), values
            files = {it: self.folder / it.lower() for it in ("GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
            for it in files.values():
                it.write_text("")
            made = self.environment | values | {k: str(v) for k, v in files.items()}
            # `shell: bash` of a composite action.
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", command],
                env=made, cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )
            said += f"[{name}]\n{done.stdout}"
            outputs |= dict(line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines())
            if done.returncode:
                return done.returncode, said
            for line in files["GITHUB_PATH"].read_text().splitlines():
                self.environment["PATH"] = f"{line}:{self.environment['PATH']}"
            if summary := files["GITHUB_STEP_SUMMARY"].read_text():
                said += summary
        return 0, said


def release(executable, version):
    """A release as `make dist` lays it out."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz", compresslevel=1) as tar:
        tar.add(executable, f"unladen-{version}-{ARCH}-linux/bin/unladen")
    name = f"unladen-{version}-{ARCH}-linux.tar.gz"
    sums = f"{hashlib.sha256(raw.getvalue()).hexdigest()}  {name}\n"
    base = f"/o/unladen/releases/download/v{version}/"
    return {base + name: raw.getvalue(), base + "SHA256SUMS": sums.encode()}


def main():
    executable = Path(sys.argv[1]).resolve()
    version = defaults()["version"]
    workspace = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.M)[1]
    assert version == workspace, f"action.yml installs {version}, Cargo.toml says {workspace}"
    GitHub.files = release(executable, version)
    GitHub.comments = [{"id": it, "body": f"comment {it}"} for it in range(101)]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), GitHub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"

    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "study.yaml").write_text(subprocess.run([executable, "demo", "--print-study"], capture_output=True, text=True, check=True).stdout)
        job = Runner(address, folder)
        short = "--rounds 2 --warmup 200ms --window 500ms --only otel --quiet"
        given = {"study": "study.yaml", "args": short, "budgets": "cpu_per_request=60%\nrss=100MiB"}

        # Two rounds decide nothing. The comment is written, then written over.
        code, said = job.run(**given, out="first")
        assert code == 0 and "::warning::A budget is undecided" in said, said
        assert GitHub.log == ["POST /repos/o/r/issues/7/comments"], GitHub.log
        body = GitHub.comments[101]["body"]
        assert body.startswith("<!-- unladen: study.yaml -->\n") and "rss" in body or "memory" in body, body
        assert (folder / "first/unladen.xml").exists() and (folder / "first/report.html").exists()
        code, said = job.run(**given, out="second", on_undecided="fail")
        assert code == 1 and "on-undecided is `fail`" in said, said
        assert GitHub.log[1:] == ["PATCH /repos/o/r/issues/comments/101"], GitHub.log
        assert len(GitHub.comments) == 102 and GitHub.comments[101]["body"] != body

        # A job that may not write says so and goes on; a study that cannot run ends the job.
        GitHub.refuse = True
        code, said = job.run(**given, out="third")
        assert code == 0 and "::warning::The report could not be written as a comment" in said, said
        code, said = job.run(study="nowhere.yaml", out="fourth")
        assert code == 1 and "::error::The study could not be measured" in said, said

        # What was tampered with on the way is not installed, what is not there is named.
        name = next(it for it in GitHub.files if it.endswith(".gz"))
        GitHub.files[name] = GitHub.files[name][:-1] + b"x"
        code, said = job.run(**given, out="fifth")
        assert code == 1 and "Measure" not in said, said
        code, said = job.run(**given, version="9.9.9")
        assert code == 1 and "::error::unladen 9.9.9 for" in said, said
    print("action.yml: 6 jobs did what they are to do")


if __name__ == "__main__":
    main()
