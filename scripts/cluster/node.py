#!/usr/bin/env python3
"""The first process of a node (its number is the argument), in process, mount and network namespaces of its own: starts the programs of the cluster in their
order, starts again what has ended, and collects orphans. When it is killed, the kernel ends all the others, unmounts what they mounted
and removes their interfaces. `cluster.py start` runs it; nobody else does.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import parts

# So long a program of the cluster is away when it was killed, seconds.
AWAY = 3.0
PROGRAMS = {
    "etcd": parts.etcd,
    "containerd": parts.containerd,
    "kube-apiserver": parts.apiserver,
    "kube-controller-manager": parts.controller_manager,
    "kube-scheduler": parts.scheduler,
    "kubelet": parts.kubelet,
}


class Node:
    def __init__(self, what):
        self.what = what
        self.running = {}
        self.due = {}

    def start(self, name):
        with open(self.what.folder / f"logs/{name}.log", "ab") as log:
            environment = {**os.environ, "PATH": f"{parts.BIN}:{os.environ['PATH']}"}
            process = subprocess.Popen(
                list(map(str, PROGRAMS[name](self.what))), stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, cwd=parts.RUN)
        self.running[process.pid] = (name, process)

    def collect(self):
        """Collects what has ended, orphans included, and starts again what is due."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            name, process = self.running.pop(pid, (None, None))
            if name:
                process.returncode = os.waitstatus_to_exitcode(status)
                print(f"{name} ended with {process.returncode}", flush=True)
                self.due[name] = time.monotonic() + AWAY
        for name, at in list(self.due.items()):
            if time.monotonic() >= at:
                del self.due[name]
                self.start(name)

    def wait(self, what, is_so):
        until = time.monotonic() + 120
        while not is_so():
            if time.monotonic() > until:
                sys.exit(f"{what}: not within two minutes; the logs beside this one may say why")
            self.collect()
            time.sleep(0.05)


def run(*command, **options):
    """A command that must succeed; its error stands in the log."""
    subprocess.run([str(it) for it in command], check=True, **options)


def answers(*probe):
    return subprocess.run([str(it) for it in probe], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def mounts():
    # The kubelet and containerd write into these, wherever they are told to; here they are the node's own.
    run("mount", "--make-rshared", "/")
    for folder in ["/run", "/var/lib", "/var/log"]:
        run("mount", "-t", "tmpfs", "-o", "mode=755", "node", folder)


def network(node, interface):
    """`cluster.py` puts one end of a pair of interfaces into this network."""
    node.wait(f"the interface {interface}", lambda: f"{interface}:" in Path("/proc/self/net/dev").read_text())
    run("ip", "link", "set", "lo", "up")
    run("ip", "address", "add", f"{node.what.address}/30", "dev", interface)
    run("ip", "link", "set", interface, "up")


def network_of_first(node):
    network(node, "host")
    run("ip", "address", "add", f"{parts.API_SERVICE}/32", "dev", "lo")


def network_of_second(node):
    """The API server, by either of its addresses, the other pods and this machine are behind the first node."""
    network(node, parts.LINK)
    for there in [parts.NODE_ADDRESS, parts.API_SERVICE, parts.FIRST.pods, parts.HOST_ADDRESS]:
        run("ip", "route", "add", there, "via", parts.LINK_ADDRESSES[0])


def start_containerd(node):
    node.start("containerd")
    ctr = [parts.BIN / "ctr", "--address", parts.CONTAINERD, "--namespace", "k8s.io"]
    node.wait("containerd", lambda: answers(*ctr, "version"))
    run(*ctr, "images", "import", parts.RUN / "pause.tar", stdout=subprocess.DEVNULL)


def first():
    node = Node(parts.FIRST)
    mounts()
    network_of_first(node)
    node.start("etcd")
    start_containerd(node)
    node.start("kube-apiserver")
    certificate = parts.RUN / "pki/apiserver.crt"
    node.wait("the certificate of the API server", lambda: certificate.exists() and (parts.RUN / "pki/apiserver.key").exists())
    parts.write_kubeconfigs()
    kubectl = [parts.BIN / "kubectl", f"--kubeconfig={parts.KUBECONFIG}", "get", "--raw", "/readyz"]
    node.wait("the API server", lambda: answers(*kubectl))
    for name in ["kube-controller-manager", "kube-scheduler", "kubelet"]:
        node.start(name)
    parts.READY.touch()
    return node


def second():
    node = Node(parts.SECOND)
    mounts()
    network_of_second(node)
    start_containerd(node)
    node.start("kubelet")
    return node


def main():
    node = {"1": first, "2": second}[sys.argv[1]]()
    while True:
        node.collect()
        time.sleep(0.2)


if __name__ == "__main__":
    main()
