#!/usr/bin/env python3
"""Counts on both sides: sends a number of requests to servers of others, over HTTP/1.1, HTTP/2 and TLS, and holds what the
server counted against what the generator says. Writes the table between the marks in bench/README.md.

    counts.py --generator target/dist/examples/generator --work target/counts [--requests 1000000] [--servers nginx,go,...]

Builds the servers in the work folder; what cannot be built or started is named and left out. Exits with 1 if a single request is
unexplained.
"""

import argparse
import json
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import marked  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
SERVERS = HERE / "servers"
# Connections and streams of the closed loops.
HTTP1, HTTP2 = (64, 1), (8, 32)


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, **options)


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def certificate(work):
    cert, key, both = work / "cert.pem", work / "key.pem", work / "both.p12"
    if not both.exists():
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "3650",
            "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", cert,
            stderr=subprocess.DEVNULL)
        run("openssl", "pkcs12", "-export", "-in", cert, "-inkey", key, "-out", both, "-passout", "pass:unladen")


class Server:
    """A running server; `count` asks it for its own count."""

    def __init__(self, name, version, command, ports, work):
        self.name, self.version, self.ports, self.work = name, version, ports, work
        self.log = open(work / f"{name}.log", "w")
        self.process = subprocess.Popen([str(word) for word in command], stdout=self.log, stderr=self.log)
        for port in ports:
            self.wait_for(port)

    def wait_for(self, port):
        for _ in range(600):
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.name} ended by itself; see {self.log.name}")
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                time.sleep(0.1)
        raise RuntimeError(f"{self.name} does not listen; see {self.log.name}")

    def count(self, _port):
        # What is answered last may be counted a moment later.
        time.sleep(0.5)
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[0]}/count", timeout=10) as answer:
            return int(answer.read())

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


class Nginx(Server):
    """Counts the lines of its access log, those answered with 200."""

    def count(self, port):
        # The log is flushed every second.
        time.sleep(2.5)
        wanted = f"{port} 200\n".encode()
        with open(self.work / "nginx" / "access.log", "rb") as log:
            return sum(line == wanted for line in log)


def start_nginx(work):
    folder = work / "nginx"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in ("cert.pem", "key.pem"):
        shutil.copy(work / name, folder)
    ports = free_ports(3)
    text = (SERVERS / "nginx" / "nginx.conf").read_text().replace("FOLDER", str(folder))
    for name, port in zip(("HTTP1_PORT", "HTTP2_PORT", "TLS_PORT"), ports):
        text = text.replace(name, str(port))
    (folder / "nginx.conf").write_text(text)
    nginx = shutil.which("nginx") or "/usr/sbin/nginx"
    told = run(nginx, "-v", capture_output=True, text=True).stderr
    version = told.strip().rsplit("/", 1)[-1]
    return Nginx("nginx", f"nginx {version}", [nginx, "-p", folder, "-e", folder / "error.log", "-c", folder / "nginx.conf"],
                 ports, work)


def start_go(work):
    binary = work / "go-server"
    run("go", "build", "-o", binary, ".", cwd=SERVERS / "go")
    version = run("go", "env", "GOVERSION", capture_output=True, text=True).stdout.strip().removeprefix("go")
    ports = free_ports(3)
    return Server("go", f"Go {version} net/http", [binary, *ports, work], ports, work)


def start_java(work):
    libraries, classes = work / "java" / "lib", work / "java" / "classes"
    if not libraries.exists():
        run("mvn", "-q", "-B", "-f", SERVERS / "java" / "pom.xml", "dependency:copy-dependencies", f"-DoutputDirectory={libraries}")
    run("javac", "-cp", f"{libraries}/*", "-d", classes, SERVERS / "java" / "src/main/java/CountingServer.java")
    version = next(libraries.glob("jetty-server-*.jar")).stem.removeprefix("jetty-server-")
    ports = free_ports(3)
    return Server("java", f"Jetty {version}", ["java", "-Xmx256m", "-cp", f"{libraries}/*:{classes}", "CountingServer", *ports, work],
                  ports, work)


def start_node(work):
    version = run("node", "--version", capture_output=True, text=True).stdout.strip()
    ports = free_ports(3)
    return Server("node", f"Node {version}", ["node", SERVERS / "node" / "server.js", *ports, work], ports, work)


STARTS = {"nginx": start_nginx, "go": start_go, "java": start_java, "node": start_node}


def load(generator, url, protocol, requests):
    connections, streams = HTTP2 if protocol == "http2" else HTTP1
    plan = {
        "url": url, "method": "GET", "headers": [], "body": None, "pacing": "closed", "connections": connections,
        "streams": streams, "protocol": protocol, "start_at_ns": None, "warmup_s": 0, "window_s": 7200,
        # Longer than any pause of a busy machine: counts are held here, not times.
        "timeout_s": 600,
        "limit": requests, "trace": None, "check": {"status": 200, "length": 5}, "out": None, "tls": {"insecure": True},
    }
    told = run(generator, input=json.dumps(plan), capture_output=True, text=True).stdout
    return json.loads(told.strip().splitlines()[-1])


def measure(server, generator, requests):
    """Rows of the table: server, protocol, sent, answered well, errors, the server's count, unexplained, and what else happened."""
    http1, http2, tls = server.ports
    cases = [
        ("HTTP/1.1", "http1", f"http://127.0.0.1:{http1}/", http1),
        ("HTTP/2", "http2", f"http://127.0.0.1:{http2}/", http2),
        ("HTTP/1.1, TLS", "http1", f"https://127.0.0.1:{tls}/", tls),
        ("HTTP/2, TLS", "http2", f"https://127.0.0.1:{tls}/", tls),
    ]
    for title, protocol, url, port in cases:
        before = server.count(port)
        outcome = load(generator, url, protocol, requests)
        seen = server.count(port) - before
        row = {
            "server": server.version, "protocol": title, "sent": outcome["sent_total"], "good": outcome["requests"],
            "errors": outcome["errors"], "seen": seen, "unexplained": abs(seen - outcome["requests"]) + outcome["unanswered"]
            + abs(outcome["sent_total"] - outcome["requests"] - outcome["errors"]) + abs(requests - outcome["sent_total"]),
            "reconnects": outcome["reconnects"], "resent": outcome["resent"], "seconds": outcome["duration_s"],
            "error_classes": outcome["error_classes"],
        }
        print(json.dumps(row), flush=True)
        yield row


def table(rows, requests):
    lines = [
        f"{requests:,} requests each in a closed loop, over {HTTP1[0]} connections (HTTP/1.1) or {HTTP2[0]} connections of "
        f"{HTTP2[1]} streams (HTTP/2), every answer checked for status and length.", "",
        "| server | protocol | sent | answered well | errors | counted by the server | unexplained | reconnects | sent again (GOAWAY) |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        lines.append(f"| {row['server']} | {row['protocol']} | {row['sent']:,} | {row['good']:,} | {row['errors']:,} | {row['seen']:,} "
                     f"| {row['unexplained']:,} | {row['reconnects']:,} | {row['resent']:,} |")
    return "\n".join(lines)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--generator", required=True, type=pathlib.Path)
    options.add_argument("--work", required=True, type=pathlib.Path)
    options.add_argument("--requests", type=int, default=1_000_000)
    options.add_argument("--servers", default=",".join(STARTS))
    options.add_argument("--table", type=pathlib.Path, help="file with the marks")
    given = options.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    work, generator = given.work.resolve(), given.generator.resolve()
    certificate(work)
    rows = []
    for name in given.servers.split(","):
        try:
            server = STARTS[name](work)
        except (OSError, RuntimeError, StopIteration, subprocess.CalledProcessError) as error:
            print(f"left out: {name}: {error}", file=sys.stderr)
            continue
        try:
            rows.extend(measure(server, generator, given.requests))
        finally:
            server.stop()
    text = table(rows, given.requests)
    print(text)
    if given.table:
        marked.write(given.table, "bench-counts", text)
    return int(not rows or any(row["unexplained"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
