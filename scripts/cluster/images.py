"""Container images of one program, as `docker save` writes them; made without Docker and without a registry."""

import hashlib
import io
import json
import os
import subprocess
import tarfile
from pathlib import Path

ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}


def tarred(files):
    """`files` (name → bytes) as a tar: executable, owned by root, without a date, so that the same files give the same image."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o755
            tar.addfile(entry, io.BytesIO(data))
    return raw.getvalue()


def linked_with(program):
    """The files that a program is linked with; of a static one none."""
    said = subprocess.run(["ldd", str(program)], capture_output=True, text=True).stdout
    return [Path(it) for it in said.split() if it.startswith("/")]


def write(path, name, program, command=()):
    """The image `name` of `program` and what it is linked with into `path`. The program is its entry point, and runs `command` unless
    told otherwise."""
    program = Path(program)
    layer = tarred({it.name if it == program else str(it)[1:]: it.read_bytes() for it in [program, *linked_with(program)]})
    config = {
        "architecture": ARCHITECTURE[os.uname().machine],
        "os": "linux",
        "config": {"Entrypoint": [f"/{program.name}"], "Cmd": list(command)},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    image = {"manifest.json": json.dumps(manifest).encode(), "config.json": json.dumps(config).encode(), "layer.tar": layer}
    Path(path).write_bytes(tarred(image))
