#!/usr/bin/env python3
"""A Kubernetes cluster of one node, or two, on this machine, for tests: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubelet,
containerd and runc, built from the Go module proxy. Needs root, Go, gcc, libseccomp-dev, iproute2 and openssl; no registry of images, no
Docker.

    scripts/cluster/cluster.py build            into target/cluster/bin, unless it is there
    scripts/cluster/cluster.py start [--share] [--nodes 2]  builds, starts, returns when the nodes are ready
    scripts/cluster/cluster.py load IMAGE.tar…  gives the nodes images as `docker save` writes them
    scripts/cluster/cluster.py image PROGRAM NAME   gives them an image of a program of this machine, and what it is linked with
    scripts/cluster/cluster.py operator         builds the OpenTelemetry Operator, unless it is there, and starts it: it instruments pods
    scripts/cluster/cluster.py account [NAME]   makes the accounts of deploy/kubernetes and a kubeconfig for `unladen`, or `unladen-user`
    scripts/cluster/cluster.py status           says what runs; exit code 1 if nothing does
    scripts/cluster/cluster.py stop             ends it and removes everything but the build

    KUBECONFIG=target/cluster/kubeconfig target/cluster/bin/kubectl get nodes

All of it lives in namespaces of its own. This machine sees an interface, `unladen-k8s`, by which it reaches the node (198.18.0.2) and
every pod of it (198.18.1.0/24); pods reach this machine at 198.18.0.1. There is no kube-proxy and no DNS: of all services only `kubernetes` has
an address that answers. Images are never pulled: pods say `imagePullPolicy: Never`, or name a tag other than `latest`. The programs of the
cluster run on the lower half of the cores; a Guaranteed pod with whole CPUs gets cores of the upper half for itself. All other pods run on
what is left of both halves, or with `--share` on the upper half: as many as there are, beside each other, for variants that take turns.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import groups
import images
import parts
from parts import ACCOUNTS, BIN, CACHE, KUBECONFIG, RUN

HERE = Path(__file__).resolve().parent
# What a folder's `go.mod` names as tools, and how it is compiled. runc has C in it; the others need none. Of containerd's file systems
# overlayfs is enough. The sandbox of every pod has a filter of system calls: seccomp.
MODULES = {
    "pod": ({"CGO_ENABLED": "0"}, []),
    "runtime": ({"CGO_ENABLED": "1"}, ["-tags=seccomp,no_btrfs,no_devmapper,no_zfs"]),
    "kubernetes": ({"CGO_ENABLED": "0"}, []),
}
# Built when somebody asks for it.
OPERATOR = {"operator": ({"CGO_ENABLED": "0"}, [])}


def output(*command, **options):
    return subprocess.run([str(it) for it in command], check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def need(*programs):
    for program, package in programs:
        if not shutil.which(program):
            sys.exit(f"{program} is missing: install {package}")


def stamp(folder):
    """Changes when what is built would."""
    text = json.dumps({**MODULES, **OPERATOR}[folder.name]) + linker(folder.name) + output("go", "env", "GOVERSION", cwd=folder)
    sources = sorted(it for it in folder.iterdir() if it.suffix in (".go", ".mod", ".sum"))
    return hashlib.sha256(text.encode() + b"".join(it.read_bytes() for it in sources)).hexdigest()


def linker(module):
    """Without what debuggers read. The programs of Kubernetes are told which version they are."""
    if module != "kubernetes":
        return "-s -w"
    version = output("go", "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes", cwd=HERE / module).strip()
    return f"-s -w -X k8s.io/component-base/version.gitVersion={version}"


def build():
    need(("go", "Go 1.21 or newer, which fetches the version that it needs"), ("gcc", "it, for runc"), ("pkg-config", "it, for runc"))
    if subprocess.run(["pkg-config", "--exists", "libseccomp"]).returncode != 0:
        sys.exit("the headers of libseccomp are missing, which runc needs: install libseccomp-dev")
    build_modules(MODULES)


def build_modules(modules):
    BIN.mkdir(parents=True, exist_ok=True)
    for name, (environment, flags) in modules.items():
        folder, made = HERE / name, CACHE / f"{name}.built"
        wanted = stamp(folder)
        if made.exists() and made.read_text() == wanted:
            continue
        print(f"building: {name} of the cluster", flush=True)
        start, before = time.monotonic(), os.times()
        tools = output("go", "list", "tool", cwd=folder).split() if "\ntool " in (folder / "go.mod").read_text() else ["."]
        command = ["go", "build", "-trimpath", "-buildvcs=false", *flags, f"-ldflags={linker(name)}", "-o", f"{BIN}/", *tools]
        subprocess.run(command, check=True, cwd=folder, env={**os.environ, **environment})
        if name == "kubernetes":
            # Its module's path ends so.
            (BIN / "server").rename(BIN / "etcd")
        after = os.times()
        cpu = after.children_user + after.children_system - before.children_user - before.children_system
        print(f"built: {name} in {time.monotonic() - start:.0f} s, {cpu:.0f} s of CPU", flush=True)
        made.write_text(wanted)


def kubectl(*arguments, **options):
    command = [str(BIN / "kubectl"), f"--kubeconfig={KUBECONFIG}", *map(str, arguments)]
    # A proxy that the environment names does not know this network.
    environment = {name: value for name, value in os.environ.items() if name.lower() not in ("http_proxy", "https_proxy", "all_proxy")}
    return subprocess.run(command, capture_output=True, text=True, env=environment, **options)


def is_ready(node=parts.FIRST):
    path = '{.status.conditions[?(@.type=="Ready")].status}'
    return KUBECONFIG.exists() and kubectl("get", "node", node.name, "--output", f"jsonpath={path}").stdout == "True"


def wait(what, is_so, seconds):
    until = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > until or groups.first() is None:
            why = f"not within {seconds} s" if groups.first() else "the node has ended"
            sys.exit(f"{what}: {why}\n{last_words()}\nRead {RUN}/logs, then run `scripts/cluster/cluster.py stop`.")
        time.sleep(0.1)


def last_words():
    lines = []
    for log in sorted(RUN.glob("**/logs/*.log")):
        lines += [f"{log.name}: {it}" for it in log.read_text(errors="replace").splitlines()[-3:]]
    return "\n".join(lines)


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)


def connect(pid):
    """A pair of interfaces from this machine into the node's network, and the way to the pods."""
    ip("link", "add", parts.INTERFACE, "type", "veth", "peer", "name", "host", "netns", str(pid))
    ip("address", "add", f"{parts.HOST_ADDRESS}/30", "dev", parts.INTERFACE)
    ip("link", "set", parts.INTERFACE, "up")
    ip("route", "add", parts.FIRST.pods, "via", parts.NODE_ADDRESS)


def connect_nodes(first, second):
    """A pair of interfaces between the networks of two nodes, and the way to the pods of the second: from the first, and by it from this machine."""
    ip("link", "add", parts.LINK, "netns", str(first), "type", "veth", "peer", "name", parts.LINK, "netns", str(second))
    inside = ["nsenter", f"--target={first}", "--net", "ip"]
    for command in [["address", "add", f"{parts.LINK_ADDRESSES[0]}/30", "dev", parts.LINK], ["link", "set", parts.LINK, "up"],
                    ["route", "add", parts.SECOND.pods, "via", parts.LINK_ADDRESSES[1]]]:
        subprocess.run([*inside, *command], check=True)
    ip("route", "add", parts.SECOND.pods, "via", parts.NODE_ADDRESS)


def as_part_of(node):
    groups.enter(node)
    os.sched_setaffinity(0, parts.system_cpus())


def start_node(node):
    """Starts the first process of a node; returns its id."""
    number = str(parts.NODES.index(node) + 1)
    command = ["unshare", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "--net", sys.executable, str(HERE / "node.py"), number]
    with open(node.folder / "logs/node.log", "wb") as log:
        # It goes on without this process, its terminal and its session.
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                         preexec_fn=lambda: as_part_of(node))
    until = time.monotonic() + 10
    while (first := groups.first(node)) is None:
        if time.monotonic() > until:
            sys.exit(f"{node.name} does not start: {last_words()}")
        time.sleep(0.02)
    return first


def start(share=False, nodes=1):
    need(("unshare", "util-linux"), ("nsenter", "util-linux"), ("ip", "iproute2"), ("openssl", "openssl"))
    if os.geteuid() != 0:
        sys.exit("a node needs namespaces, mounts and control groups: run this as root")
    if len(os.sched_getaffinity(0)) < 2:
        sys.exit("a node needs two cores: one for its programs, one for a Guaranteed pod")
    if any(CACHE.is_relative_to(it) for it in ["/run", "/var/lib", "/var/log"]):
        sys.exit(f"{CACHE} is in a folder that the node hides from its programs: use a checkout elsewhere")
    if groups.first() is not None:
        if is_ready():
            there = [node for node in parts.NODES if groups.first(node)]
            same = json.loads((RUN / "kubelet.json").read_text()) == parts.kubelet_configuration(parts.FIRST, share)
            if not same or len(there) != nodes:
                sys.exit("a cluster runs that was started otherwise: `scripts/cluster/cluster.py stop` ends it")
            return print(f"the cluster runs already: KUBECONFIG={KUBECONFIG}")
        sys.exit("a cluster runs on this machine that is not ready, or another checkout's: `scripts/cluster/cluster.py stop` ends it")
    stop()
    build()
    begun = time.monotonic()
    parts.write(share)
    images.write(RUN / "pause.tar", parts.PAUSE_IMAGE, BIN / "pod", ["pause"])
    groups.make()
    first = start_node(parts.FIRST)
    connect(first)
    wait("the programs of the cluster", parts.READY.exists, 120)
    wait("the node", is_ready, 120)
    if nodes == 2:
        connect_nodes(first, start_node(parts.SECOND))
        wait("the second node", lambda: is_ready(parts.SECOND), 120)
    wait("the account of pods", lambda: kubectl("get", "serviceaccount", "default").returncode == 0, 60)
    print(f"the cluster is ready after {time.monotonic() - begun:.1f} s: KUBECONFIG={KUBECONFIG}")


def stop():
    """Ends what is there of a cluster, however far it came; does nothing if there is none."""
    groups.kill()
    groups.remove()
    # The interface goes with its other end, soon after the last process.
    until = time.monotonic() + 10
    while Path(f"/sys/class/net/{parts.INTERFACE}").exists():
        if time.monotonic() > until:
            ip("link", "delete", parts.INTERFACE)
        time.sleep(0.05)
    for config in [KUBECONFIG, *ACCOUNTS.values()]:
        config.unlink(missing_ok=True)
    if RUN.exists():
        shutil.rmtree(RUN)


def load(files):
    firsts = [first for node in parts.NODES if (first := groups.first(node))]
    if not firsts:
        sys.exit("no cluster runs: `scripts/cluster/cluster.py start` first")
    for file, first in [(file, first) for file in files for first in firsts]:
        with open(file, "rb") as image:
            command = ["nsenter", f"--target={first}", "--mount", "--pid", "--net", BIN / "ctr", "--address", parts.CONTAINERD,
                       "--namespace=k8s.io", "images", "import", "-"]
            done = subprocess.run([str(it) for it in command], stdin=image, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{file}: not loaded: {done.stderr.strip() or done.stdout.strip()}. Is it as `docker save` writes it?")


def image(program, name):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "image.tar"
        images.write(file, name, Path(program).resolve())
        load([file])


def operator():
    """Among the programs of the first node, where the API server reaches it without leaving that network. Installed as its project's manifests
    do, less what collectors need."""
    first = groups.first()
    if first is None:
        sys.exit("no cluster runs: `scripts/cluster/cluster.py start` first")
    build_modules(OPERATOR)
    folder = RUN / "operator"
    certificates = folder / "k8s-webhook-server/serving-certs"
    if certificates.exists():
        return print("the operator runs already")
    certificates.mkdir(parents=True)
    subprocess.run(parts.server_certificate(certificates / "tls"), check=True, capture_output=True)
    module = Path(output("go", "list", "-m", "-f", "{{.Dir}}", "github.com/open-telemetry/opentelemetry-operator", cwd=HERE / "operator").strip())
    # Too large for the annotation that the client would make.
    apply("--server-side", f"--filename={module}/config/crd/bases/opentelemetry.io_instrumentations.yaml")

    def inside(*command):
        return ["nsenter", f"--target={first}", "--mount", "--pid", "--net", *map(str, command)]

    environment = {**os.environ, **parts.operator_environment(folder)}
    with open(RUN / "logs/operator.log", "wb") as log:
        subprocess.Popen(inside(BIN / "opentelemetry-operator"), stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
                         start_new_session=True, preexec_fn=lambda: as_part_of(parts.FIRST))
    knock = f"import socket; socket.create_connection(('127.0.0.1', {parts.OPERATOR_PORT}), 1)"
    wait("the operator", lambda: subprocess.run(inside(sys.executable, "-c", knock), capture_output=True).returncode == 0, 120)
    apply("--filename=-", input=json.dumps(parts.operator_webhooks((certificates / "tls.crt").read_bytes())))


def apply(*arguments, **options):
    done = kubectl("apply", *arguments, **options)
    if done.returncode != 0:
        sys.exit(f"kubectl apply {' '.join(arguments)}: {done.stderr.strip()}")


def account(name):
    """An account that unladen, or its user, is to have in a cluster: with the rights of deploy/kubernetes and no others."""
    if not is_ready():
        sys.exit("no cluster runs: `scripts/cluster/cluster.py start` first")
    for file in parts.RIGHTS:
        apply(f"--filename={file}")
    token = kubectl("create", "token", name, "--namespace=unladen", "--duration=24h")
    if token.returncode != 0:
        sys.exit(f"no token for the account: {token.stderr.strip()}")
    config = ACCOUNTS[name]
    config.touch(mode=0o600)
    config.write_text(parts.kubeconfig(name, token.stdout.strip()))
    print(config)


def status():
    first = groups.first()
    if first is None:
        print("no cluster runs")
        return 1
    for pid in sorted(groups.programs()):
        facts = dict(it.split(":", 1) for it in Path(f"/proc/{pid}/status").read_text().splitlines())
        print(f"{pid:>8}  {int(facts.get('VmRSS', '0 kB').split()[0]) / 1024:6.0f} MiB  {facts['Name'].strip()}")
    print(f"{len(groups.members() - groups.programs())} processes in pods")
    print(kubectl("get", "nodes,pods", "--all-namespaces", "--output=wide").stdout.rstrip())
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ["build", "operator", "status", "stop"]:
        commands.add_parser(name)
    of_start = commands.add_parser("start")
    of_start.add_argument("--share", action="store_true")
    of_start.add_argument("--nodes", type=int, default=1, choices=[1, 2])
    commands.add_parser("account").add_argument("name", nargs="?", default="unladen", choices=ACCOUNTS)
    commands.add_parser("load").add_argument("image", nargs="+")
    of_program = commands.add_parser("image")
    of_program.add_argument("program")
    of_program.add_argument("name")
    given = parser.parse_args()
    if given.command == "load":
        return load(given.image)
    if given.command == "image":
        return image(given.program, given.name)
    if given.command == "start":
        return start(given.share, given.nodes)
    if given.command == "account":
        return account(given.name)
    return {"build": build, "operator": operator, "status": status, "stop": stop}[given.command]()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as failed:
        sys.exit(f"`{' '.join(map(str, failed.cmd))}` ended with {failed.returncode}, see above")
