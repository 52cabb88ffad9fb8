#!/usr/bin/env python3
"""Starts the cluster, uses all that a measurement needs of it, ends it and looks for what is left; the same once more for pods that share
cores. Prints each step with its time.

    scripts/cluster/test.py
"""

import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import cluster
import groups
import images
import parts
from cluster import kubectl

# Of a cluster in which a check failed.
LOGS = parts.CACHE / "failed"
IMAGE = "unladen.local/subject:1"
USER = 1000
V1 = Path("/sys/fs/cgroup/cpuacct")
# What a node leaves on a machine in other hands.
FOLDERS = [
    "/run/containerd", "/run/netns", "/run/nri", "/run/runc", "/var/lib/kubelet", "/var/lib/containerd", "/var/lib/cni", "/var/log/pods",
    "/var/log/containers", "/etc/cni", "/etc/cdi", "/etc/kubernetes", "/etc/containerd", "/opt/cni", "/opt/containerd",
    "/usr/libexec/kubernetes",
]


def check(is_so, otherwise):
    if not is_so:
        raise AssertionError(otherwise)


def eventually(what, seconds, question):
    """The answer to `question` when it is neither false nor empty."""
    until = time.monotonic() + seconds
    while not (answer := question()):
        check(time.monotonic() < until, f"{what}: not within {seconds} s")
        time.sleep(0.1)
    return answer


def ask(*arguments, **options):
    """What kubectl says; it must succeed."""
    done = kubectl(*arguments, **options)
    check(done.returncode == 0, f"kubectl {' '.join(map(str, arguments))}: {done.stderr.strip()}")
    return done.stdout


def get(*what):
    return json.loads(ask("get", *what, "--output=json"))


def container(name, *arguments, **more):
    """With no right that the strictest of the Pod Security Standards refuses."""
    rights = {"runAsUser": USER, "runAsNonRoot": True, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
              "seccompProfile": {"type": "RuntimeDefault"}}
    return {"name": name, "image": IMAGE, "imagePullPolicy": "Never", "args": list(arguments), "securityContext": rights, **more}


def template(pod, labels=None, **more):
    return {"metadata": {"labels": labels or {}}, "spec": {"containers": [pod], "terminationGracePeriodSeconds": 5, **more}}


def subject():
    """Guaranteed, one whole core."""
    whole = {"cpu": "1", "memory": "64Mi"}
    pod = container(
        "subject", "serve", ":8080", resources={"requests": whole, "limits": whole},
        readinessProbe={"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1})
    labels = {"app": "subject"}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template(pod, labels)}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "subject"}, "spec": spec}


def job():
    """Two parts. Each ends well only if it reaches the API server at the address of its service."""
    spec = {"completions": 2, "parallelism": 2, "completionMode": "Indexed", "backoffLimit": 0,
            "template": template(container("part", "reach", f"{parts.API_SERVICE}:443"), restartPolicy="Never")}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "parts"}, "spec": spec}


def beside():
    pod = template(container("beside", "pause"))
    return {"apiVersion": "v1", "kind": "Pod", **pod, "metadata": {"name": "beside"}}


def apply(thing):
    ask("apply", "--filename=-", input=json.dumps(thing))


def running(*selector):
    """The pod, once it is ready."""
    def question():
        pods = get("pods", *selector)
        for pod in pods.get("items", [pods]):
            if all(it["ready"] for it in pod.get("status", {}).get("containerStatuses", [{"ready": False}])):
                return pod
    return eventually(f"pod {' '.join(selector)} ready", 60, question)


def group(pod, hierarchy):
    """Of the first container of a pod, in a hierarchy of version 1 or in the one of version 2."""
    root = Path("/sys/fs/cgroup") / (hierarchy if V1.exists() else "") / parts.CGROUP
    container_id = pod["status"]["containerStatuses"][0]["containerID"].split("//")[1]
    found = list(root.glob(f"**/kubepods/**/pod{pod['metadata']['uid']}/{container_id}"))
    check(len(found) == 1, f"control groups of {pod['metadata']['name']} in {root}: {found}")
    return found[0]


def cores(pod):
    """Those that the kernel lets the first process of a pod use."""
    process = (group(pod, "cpuset") / "cgroup.procs").read_text().split()[0]
    line = next(it for it in Path(f"/proc/{process}/status").read_text().splitlines() if it.startswith("Cpus_allowed_list:"))
    ranges = [it.split("-") for it in line.split()[1].split(",")]
    return {core for it in ranges for core in range(int(it[0]), int(it[-1]) + 1)}


def cpu_text(text):
    """Seconds, of `cpuacct.usage` or `cpu.stat`."""
    return int(text) / 1e9 if V1.exists() else int(text.split()[1]) / 1e6


def cpu(pod):
    return cpu_text((group(pod, "cpuacct") / ("cpuacct.usage" if V1.exists() else "cpu.stat")).read_text())


def direct(url, timeout):
    """Asks without any proxy that the environment names, whatever the certificate."""
    insecure = urllib.request.HTTPSHandler(context=ssl._create_unverified_context())
    return urllib.request.build_opener(urllib.request.ProxyHandler({}), insecure).open(url, timeout=timeout)


def fetch(pod, path):
    with direct(f"http://{pod['status']['podIP']}:8080{path}", timeout=20) as answer:
        return answer.read().decode().strip()


def own_cores(pod, other):
    own = cores(pod)
    check(len(own) == 1 and not own & set(parts.system_cpus()), f"the Guaranteed pod uses cores {own}")
    # The kubelet looks after those that run already every ten seconds.
    eventually(f"the other pod off core {own}", 25, lambda: not own & cores(other))
    return f"core {min(own)} is the subject's own"


def known_cpu(pod):
    """20 requests of 50 ms of CPU each, against what the group has used. The service uses no more than a few ms beside it."""
    before = cpu(pod)
    for _ in range(20):
        check(fetch(pod, "/burn?ms=50") == "burnt", "no answer")
    used = cpu(pod) - before
    check(1.0 <= used < 1.2, f"20 requests of 50 ms used {used:.3f} s of CPU by the control group")
    return f"20 requests of 50 ms: {used:.3f} s of CPU by the control group"


def probe(pod):
    """An ephemeral container reads the counter of the subject's own group, between two of ours."""
    name = pod["metadata"]["name"]
    file = "/proc/1/root/sys/fs/cgroup/" + ("cpuacct/cpuacct.usage" if V1.exists() else "cpu.stat")
    now = get("pod", name)
    now["spec"]["ephemeralContainers"] = [container("probe", "read", file, targetContainerName="subject")]
    before = cpu(pod)
    ask("replace", "--raw", f"/api/v1/namespaces/default/pods/{name}/ephemeralcontainers", "--filename=-", input=json.dumps(now))
    said = eventually("the probe's words", 30, lambda: kubectl("logs", name, "--container=probe").stdout)
    after = cpu(pod)
    read = cpu_text(said.split(": ", 1)[1])
    check(before <= read <= after, f"the ephemeral container read {read} s of CPU, this machine {before} before and {after} after it")
    return f"an ephemeral container, as restricted as the subject, read {read:.3f} s"


def restrict():
    """From here on a pod must do with the rights of the strictest standard."""
    ask("label", "namespace", "default", "pod-security.kubernetes.io/enforce=restricted")
    refused = kubectl("run", "root", "--image", IMAGE)
    check(refused.returncode != 0 and "violates PodSecurity" in refused.stderr, f"a pod of root is not refused: {refused}")


def rights():
    check(ask("auth", "can-i", "create", "pods").strip() == "yes", "the administrator may not create pods")
    refused = kubectl("get", "secrets", "--as=system:serviceaccount:default:default")
    check(refused.returncode != 0 and "forbidden" in refused.stderr, f"the account of pods may read secrets: {refused.stdout}")
    try:
        direct(f"https://{parts.NODE_ADDRESS}:10250/pods", timeout=5)
        raise AssertionError("the kubelet answers whoever asks")
    except urllib.error.HTTPError as refusal:
        check(refusal.code == 401, f"the kubelet answers {refusal.code} to whoever asks")
    return "RBAC refuses the account of pods what nobody gave it, the kubelet everybody but the API server"


def answers():
    return kubectl("get", "--raw", "/readyz", "--request-timeout=2s").returncode == 0


def named(name):
    return [it for it in groups.members(groups.SYSTEM) if Path(f"/proc/{it}/comm").read_text().strip() == name]


def outage(pod):
    """The API server is killed; what runs goes on, and it comes back."""
    killed = named("kube-apiserver")
    check(len(killed) == 1, f"API servers: {killed}")
    os.kill(killed[0], signal.SIGKILL)
    begun, failures = time.monotonic(), 0
    while not answers():
        failures += 1
        check(fetch(pod, "/") == "ok", "the subject does not answer without an API server")
        check(time.monotonic() - begun < 60, "the API server does not come back within a minute")
    away = time.monotonic() - begun
    check(failures > 0 and named("kube-apiserver") != killed, "the API server was never away")
    eventually("the node ready again", 60, cluster.is_ready)
    again = running("--selector=app=subject")
    check(again["metadata"]["uid"] == pod["metadata"]["uid"], "the subject was replaced")
    check(again["status"]["containerStatuses"][0]["restartCount"] == 0, "the subject was started again")
    return f"the API server was away for {away:.1f} s, the subject answered all the time"


def indexed_job():
    apply(job())
    done = eventually("the Indexed Job done", 60, lambda: get("job", "parts")["status"].get("completionTime") and get("job", "parts"))
    check(done["status"].get("completedIndexes") == "0,1", f"the Indexed Job ended so: {done['status']}")
    return "both parts of the Indexed Job have ended well"


def namespaces():
    """Those that the node has and this process has not."""
    first = groups.first()
    own, its = ({os.readlink(f"/proc/{pid}/ns/{it}") for it in ["pid", "mnt", "net"]} for pid in ["self", first])
    check(len(its - own) == 3, f"the node has {its}, this process {own}")
    return its


def processes(marks):
    found = set(groups.members())
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            spaces = {os.readlink(folder / "ns" / it) for it in ["pid", "mnt", "net"]}
            if spaces & marks or str(parts.BIN).encode() in (folder / "cmdline").read_bytes():
                found.add(int(folder.name))
        except OSError:
            continue
    return sorted(found)


def left(marks, known_folders):
    """What this machine has of the cluster, by kind."""
    mounts = [it.split()[1] for it in Path("/proc/self/mounts").read_text().splitlines()]
    routes = cluster.output("ip", "route", "show").splitlines() + cluster.output("ip", "-brief", "address").splitlines()
    return {
        "processes": processes(marks),
        "control groups": [str(it) for it in groups.roots()],
        "network": [it for it in routes if parts.INTERFACE in it or "198.18." in it],
        "files": [str(it) for it in [parts.RUN, parts.KUBECONFIG] if it.exists()],
        "mounts": [it for it in mounts if it.startswith((str(parts.CACHE), *FOLDERS))],
        "folders": [it for it in FOLDERS if Path(it).exists() and it not in known_folders],
    }


def step(text, begun=time.monotonic()):
    print(f"{time.monotonic() - begun:6.1f} s  {text}", flush=True)


def load():
    with tempfile.NamedTemporaryFile(suffix=".tar") as image:
        images.write(image.name, IMAGE, parts.BIN / "pod")
        cluster.load([image.name])


def use():
    """All that a measurement needs."""
    load()
    step("image loaded")
    restrict()
    apply(subject())
    apply(beside())
    pod, other = running("--selector=app=subject"), running("beside")
    check(fetch(pod, "/") == "ok", "no answer over HTTP")
    step(f"the subject answers at its own address, {pod['status']['podIP']}")
    step(own_cores(pod, other))
    step(known_cpu(pod))
    step(probe(pod))
    step(rights())
    step(outage(pod))
    step(indexed_job())


def share():
    """Pods that are not Guaranteed, beside each other, away from the programs of the cluster."""
    load()
    for name in ["one", "other"]:
        pod = template(container(name, "pause", resources={"requests": {"cpu": "300m"}}))
        apply({"apiVersion": "v1", "kind": "Pod", **pod, "metadata": {"name": name}})
    found = [cores(running(name)) for name in ["one", "other"]]
    theirs = os.sched_getaffinity(0) - set(parts.system_cpus())
    check(found == [theirs, theirs], f"two pods that share {theirs} use the cores {found}")
    step(f"two pods share the cores {sorted(theirs)} and no others")
    ask("delete", "pods", "--all", "--namespace=default", "--grace-period=1")
    deployments("--", "--ignored", "--test-threads=1", "ending::")
    step("unladen loses nothing, and leaves nothing, while the API server is away")


def deployments(*arguments):
    """unladen's own tests that take the API server away, with the rights of deploy/kubernetes; `end_to_end.sh` has the others."""
    command = [os.environ.get("CARGO", "cargo"), "test", "--release", "--locked", "--package=unladen-processes", "--test=kubernetes"]
    done = subprocess.run([*command, *arguments], cwd=parts.ROOT, env={**os.environ, "UNLADEN_CLUSTER": str(parts.KUBECONFIG)})
    check(done.returncode == 0, f"`{' '.join([*command, *arguments])}` failed, see above")


def cycle(work, shares, known_folders):
    """Starts a cluster, does something with it, ends it and looks for what is left."""
    try:
        cluster.start(shares, nodes=2 if shares else 1)
        step("the cluster runs")
        marks = namespaces()
        work()
        seen = left(marks, known_folders)
        # What the search below cannot see while it is there, it could not find afterwards either.
        for kind in ["processes", "control groups", "network", "files"]:
            check(seen[kind], f"{kind} of a running cluster: none found")
    except BaseException:
        if parts.RUN.exists():
            shutil.copytree(parts.RUN / "logs", LOGS, dirs_exist_ok=True)
        print(f"{cluster.last_words()}\nAll logs are kept in {LOGS}", file=sys.stderr)
        raise
    finally:
        cluster.stop()
    step("stopped")
    remains = {kind: found for kind, found in left(marks, known_folders).items() if found}
    check(not remains, f"left of the cluster: {remains}")
    step("nothing is left")


def main():
    cluster.build()
    deployments("--no-run")
    cluster.stop()
    shutil.rmtree(LOGS, ignore_errors=True)
    known_folders = [it for it in FOLDERS if Path(it).exists()]
    cycle(use, False, known_folders)
    cycle(share, True, known_folders)


if __name__ == "__main__":
    try:
        main()
    except (AssertionError, TimeoutError, urllib.error.URLError) as failure:
        sys.exit(f"cluster test: {failure}")
