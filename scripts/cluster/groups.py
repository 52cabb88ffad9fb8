"""Control groups of the cluster, in every hierarchy of this machine. They say what belongs to it: no file of process ids is needed,
and nothing is taken for it that is not."""

import os
import signal
import time
from pathlib import Path

from parts import CGROUP, FIRST, NODES

# Of the programs of a node, in its group; the kubelet makes `kubepods` beside it.
SYSTEM = "system"


def hierarchies():
    """Where the hierarchies of version 1, and the one of version 2, are mounted."""
    lines = [it.split() for it in Path("/proc/self/mounts").read_text().splitlines()]
    return [Path(folder) for _, folder, kind, *_ in lines if kind in ("cgroup", "cgroup2")]


def roots():
    """The groups that exist."""
    return [it / CGROUP for it in hierarchies() if (it / CGROUP).exists()]


def make():
    for hierarchy in hierarchies():
        made = [hierarchy / group for node in NODES for group in (node.group, f"{node.group}/{SYSTEM}")]
        for group in made:
            group.mkdir()
        if (hierarchy / "cpuset.mems").exists():
            # In version 1 a new group has no cores, and nobody may enter it.
            for group in made:
                for file in ["cpuset.cpus", "cpuset.mems"]:
                    if (hierarchy / file).exists():
                        (group / file).write_text((hierarchy / file).read_text())


def enter(node):
    """Puts this process into the group of a node's programs."""
    for hierarchy in hierarchies():
        (hierarchy / node.group / SYSTEM / "cgroup.procs").write_text(str(os.getpid()))


def members(below="**"):
    """Ids of the processes in the groups."""
    found = set()
    for root in roots():
        for file in root.glob(f"{below}/cgroup.procs"):
            try:
                found.update(map(int, file.read_text().split()))
            except OSError:
                # Removed meanwhile.
                continue
    return found


def programs():
    """Ids of the programs of all nodes."""
    return {pid for node in NODES for pid in members(system(node))}


def system(node):
    """The group of a node's programs, from that of the cluster."""
    return f"{node.group}/{SYSTEM}".removeprefix(f"{CGROUP}/")


def first(node=FIRST):
    """Id of a node's first process; `None`: there is no such node. It has the id 1 in the innermost of its two namespaces."""
    for pid in members(system(node)):
        try:
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            continue
        ids = next(it.split()[1:] for it in status.splitlines() if it.startswith("NSpid:"))
        if len(ids) > 1 and ids[-1] == "1":
            return pid
    return None


def kill():
    """Ends all processes in the groups and waits for them."""
    until = time.monotonic() + 30
    while left := members():
        if time.monotonic() > until:
            raise TimeoutError(f"processes {sorted(left)} do not end")
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.1)


def remove():
    """Removes the groups. The kernel may hold one for a moment after its last process."""
    until = time.monotonic() + 10
    while left := roots():
        for root in left:
            for folder, _, _ in os.walk(root, topdown=False):
                try:
                    os.rmdir(folder)
                except OSError:
                    continue
        if roots() and time.monotonic() > until:
            raise TimeoutError(f"{', '.join(map(str, roots()))} cannot be removed")
        time.sleep(0.05)
