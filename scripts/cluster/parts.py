"""What the cluster consists of: addresses, where things are, the command lines and configurations of its programs. Starts none of them."""

import base64
import json
import os
import secrets
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / "target/cluster"
BIN = CACHE / "bin"
# Everything that lives as long as the cluster and no longer.
RUN = CACHE / "run"
KUBECONFIG = CACHE / "kubeconfig"
# The same for the accounts of deploy/kubernetes, by their names.
ACCOUNTS = {"unladen": CACHE / "account", "unladen-user": CACHE / "user"}
RIGHTS = [ROOT / f"deploy/kubernetes/{it}.yaml" for it in ["role", "user", "confine"]]
READY = RUN / "ready"
# The API server's as a client of the kubelet: certificate and key.
CLIENT = RUN / "pki/kubelet-client"

# Names that the machine sees: the interface to the node, and the control groups of all that runs in it.
INTERFACE = "unladen-k8s"
CGROUP = "unladen-cluster"
# 198.18.0.0/15 is set apart for measuring networks (RFC 2544): nobody's office, VPN or Docker uses it, as it may 10.0.0.0/8.
HOST_ADDRESS = "198.18.0.1"
NODE_ADDRESS = "198.18.0.2"
SERVICES = "198.18.2.0/24"
# The service `kubernetes` of the namespace `default`: the first address of SERVICES. The node has it itself, as there is no kube-proxy.
API_SERVICE = "198.18.2.1"
# Between the first node and the second: the name of either end of a pair of interfaces, and their addresses.
LINK = "nodes"
LINK_ADDRESSES = ["198.18.0.9", "198.18.0.10"]
# Every node has a /run of its own.
CONTAINERD = "/run/containerd/containerd.sock"
OPERATOR_PORT = 9443
PAUSE_IMAGE = "unladen.local/pause:1"
RUNTIME = "io.containerd.cri.v1.runtime"


@dataclass(frozen=True)
class Node:
    """The first node has everything; a second one has containerd and the kubelet, and reaches the rest by it."""

    name: str
    address: str
    pods: str
    # Control group, and what lives as long as the node.
    group: str
    folder: Path

    @property
    def user(self):
        """Name of the kubelet among `users`."""
        return f"kubelet-{self.name}"


NODES = [
    Node("node-1", NODE_ADDRESS, "198.18.1.0/24", CGROUP, RUN),
    Node("node-2", LINK_ADDRESSES[1], "198.18.3.0/24", f"{CGROUP}/node-2", RUN / "node-2"),
]
FIRST, SECOND = NODES


def system_cpus():
    """Cores for everything but Guaranteed pods: the lower half. One is always left for these."""
    usable = sorted(os.sched_getaffinity(0))
    return usable[: max(1, len(usable) // 2)]


def users():
    """Who may do what comes from RBAC's own groups; the node's rights from the Node authoriser."""
    return {
        "admin": ("unladen-admin", "system:masters"),
        "controller-manager": ("system:kube-controller-manager", ""),
        "scheduler": ("system:kube-scheduler", ""),
        **{node.user: (f"system:node:{node.name}", "system:nodes") for node in NODES},
    }


def kubeconfig(user, token):
    """JSON is YAML. The authority is the certificate that the API server has signed for itself."""
    authority = base64.b64encode((RUN / "pki/apiserver.crt").read_bytes()).decode()
    return json.dumps({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "unladen", "cluster": {"server": f"https://{NODE_ADDRESS}", "certificate-authority-data": authority}}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": "unladen", "context": {"cluster": "unladen", "user": user}}],
        "current-context": "unladen",
    }, indent=1)


def kubelet_configuration(node, share):
    """`share`: pods without cores of their own keep off the cores of the cluster's programs."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        # The API server alone, by its certificate: who may use the kubelet is root on this machine.
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": False}, "x509": {"clientCAFile": f"{CLIENT}.crt"}},
        "authorization": {"mode": "AlwaysAllow"},
        "address": node.address,
        "containerRuntimeEndpoint": f"unix://{CONTAINERD}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{node.group}",
        # A Guaranteed pod with whole CPUs has cores of its own.
        "cpuManagerPolicy": "static",
        "cpuManagerPolicyOptions": {"strict-cpu-reservation": str(share).lower()},
        "reservedSystemCPUs": ",".join(map(str, system_cpus())),
        "enforceNodeAllocatable": [],
        # The disk of a developer's machine may be fuller than a node's; nobody evicts a pod for it here.
        "evictionHard": {"memory.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%"},
        "imageGCHighThresholdPercent": 100,
        "localStorageCapacityIsolation": False,
        "failSwapOn": False,
        "failCgroupV1": False,
        "makeIPTablesUtilChains": False,
        "resolvConf": "",
        "volumePluginDir": f"{node.folder}/kubelet-plugins",
    }


def containerd_configuration(node):
    """`restrict_oom_score_adj`: a machine without CAP_SYS_RESOURCE, as many a CI has, may not lower anybody's score; runc fails then."""
    return f"""version = 3
root = "{node.folder}/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt"]
[grpc]
address = "{CONTAINERD}"
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{PAUSE_IMAGE}"
[plugins."{RUNTIME}"]
restrict_oom_score_adj = true
[plugins."{RUNTIME}".cni]
bin_dirs = ["{BIN}"]
conf_dir = "{node.folder}/cni"
[plugins."{RUNTIME}".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."{RUNTIME}".containerd.runtimes.runc.options]
BinaryName = "{BIN}/runc"
"""


def network_configuration(node):
    """One bridge in the node's network. Pods see each other, the node and, by it, this machine's HOST_ADDRESS; nothing else."""
    ipam = {"type": "host-local", "dataDir": f"{node.folder}/ipam", "ranges": [[{"subnet": node.pods}]], "routes": [{"dst": "0.0.0.0/0"}]}
    bridge = {"type": "bridge", "bridge": "pods", "isGateway": True, "ipMasq": False, "hairpinMode": True, "ipam": ipam}
    return {"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge]}


def write(share):
    """Writes what the programs read at their start."""
    for folder in ["pki", "kubeconfig"]:
        (RUN / folder).mkdir(parents=True)
    for node in NODES:
        for folder in ["logs", "cni"]:
            (node.folder / folder).mkdir(parents=True)
        (node.folder / "containerd.toml").write_text(containerd_configuration(node))
        (node.folder / "kubelet.json").write_text(json.dumps(kubelet_configuration(node, share), indent=1))
        (node.folder / "cni/pods.conflist").write_text(json.dumps(network_configuration(node), indent=1))
    tokens = {it: secrets.token_hex(16) for it in users()}
    (RUN / "tokens.json").write_text(json.dumps(tokens))
    lines = [f'{tokens[it]},{name},{name},"{groups}"\n' for it, (name, groups) in users().items()]
    (RUN / "tokens.csv").write_text("".join(lines))
    for secret in [RUN / "tokens.json", RUN / "tokens.csv"]:
        secret.chmod(0o600)
    subprocess.run(client_certificate(), check=True, capture_output=True)


def client_certificate():
    return certificate(CLIENT, "kube-apiserver", "extendedKeyUsage=clientAuth")


def server_certificate(path):
    """Of a server on 127.0.0.1."""
    return certificate(path, "operator", "subjectAltName=IP:127.0.0.1")


def certificate(path, name, extension):
    """It is its own authority."""
    return [
        "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "365", "-subj", f"/CN={name}",
        "-addext", extension, "-keyout", f"{path}.key", "-out", f"{path}.crt",
    ]


def operator_environment(folder):
    """It looks for its certificate where temporary files are."""
    return {
        "TMPDIR": str(folder), "KUBECONFIG": str(KUBECONFIG), "WEBHOOK_PORT": str(OPERATOR_PORT), "METRICS_ADDR": "127.0.0.1:9444",
        "HEALTH_PROBE_ADDR": "127.0.0.1:9445", "IGNORE_MISSING_COLLECTOR_CRDS": "true",
    }


def operator_webhooks(certificate):
    """Those of its project for pods and for objects of the kind Instrumentation, at the address that it has here."""
    def webhook(name, path, policy, group, version, resources, operations):
        url = f"https://127.0.0.1:{OPERATOR_PORT}/{path}"
        return {
            "name": name, "clientConfig": {"url": url, "caBundle": base64.b64encode(certificate).decode()}, "failurePolicy": policy,
            "rules": [{"apiGroups": [group], "apiVersions": [version], "resources": resources, "operations": operations}],
            "sideEffects": "None", "admissionReviewVersions": ["v1"],
        }

    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "opentelemetry-operator"},
        "webhooks": [
            webhook("mpod.kb.io", "mutate-v1-pod", "Ignore", "", "v1", ["pods"], ["CREATE"]),
            webhook("minstrumentation.kb.io", "mutate-opentelemetry-io-v1alpha1-instrumentation", "Fail", "opentelemetry.io", "v1alpha1",
                    ["instrumentations"], ["CREATE", "UPDATE"]),
        ],
    }


def write_kubeconfigs():
    """Needs the certificate of an API server that has started once."""
    tokens = json.loads((RUN / "tokens.json").read_text())
    for user, token in tokens.items():
        path = KUBECONFIG if user == "admin" else RUN / "kubeconfig" / user
        path.touch(mode=0o600)
        path.write_text(kubeconfig(user, token))


def etcd(_):
    client, peer = "http://127.0.0.1:2379", "http://127.0.0.1:2380"
    return [
        BIN / "etcd", f"--data-dir={RUN}/etcd", "--name=etcd", f"--listen-client-urls={client}", f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=etcd={peer}", "--unsafe-no-fsync",
    ]


def containerd(node):
    return [BIN / "containerd", f"--config={node.folder}/containerd.toml"]


def apiserver(_):
    # It signs a certificate for itself and writes it, with its key, into pki; the key then signs the tokens of service accounts, too.
    return [
        BIN / "kube-apiserver", "--etcd-servers=http://127.0.0.1:2379", f"--advertise-address={NODE_ADDRESS}", "--secure-port=443",
        f"--cert-dir={RUN}/pki", f"--service-account-signing-key-file={RUN}/pki/apiserver.key",
        f"--service-account-key-file={RUN}/pki/apiserver.key", "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-cluster-ip-range={SERVICES}", f"--token-auth-file={RUN}/tokens.csv", "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction", "--anonymous-auth=false", "--allow-privileged=true",
        # Webhooks are called at the pods' addresses: nobody translates those of services here.
        "--enable-aggregator-routing=true", "--kubelet-preferred-address-types=InternalIP",
        f"--kubelet-client-certificate={CLIENT}.crt", f"--kubelet-client-key={CLIENT}.key",
    ]


def controller(name, *more):
    config = f"{RUN}/kubeconfig/{name}"
    return [
        BIN / f"kube-{name}", f"--kubeconfig={config}", f"--authentication-kubeconfig={config}", f"--authorization-kubeconfig={config}",
        f"--cert-dir={RUN}/pki/{name}", "--authentication-skip-lookup=true", "--bind-address=127.0.0.1", "--leader-elect=false", *more,
    ]


def controller_manager(_):
    return controller(
        "controller-manager", f"--root-ca-file={RUN}/pki/apiserver.crt", f"--service-account-private-key-file={RUN}/pki/apiserver.key",
        "--use-service-account-credentials=true", f"--flex-volume-plugin-dir={RUN}/kubelet-plugins",
    )


def scheduler(_):
    return controller("scheduler")


def kubelet(node):
    return [
        BIN / "kubelet", f"--config={node.folder}/kubelet.json", f"--kubeconfig={RUN}/kubeconfig/{node.user}",
        f"--hostname-override={node.name}", f"--node-ip={node.address}", f"--cert-dir={node.folder}/pki/kubelet",
        f"--root-dir={node.folder}/kubelet",
    ]
