#!/usr/bin/env python3
"""Packages of executables that are built already: archives, Debian packages, Python wheels, an npm package, a software bill of
materials, third-party licences, checksums. Builds nothing. The same executables and SOURCE_DATE_EPOCH give the same bytes.

    scripts/dist/package.py --out target/packages x86_64=PATH [aarch64=PATH]

Man pages and completions come from the first executable, which must run on this machine.
"""

import argparse
import base64
import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from pathlib import Path

import sbom

ROOT = Path(__file__).resolve().parents[2]
SUMMARY = "Measures what instrumentation costs a service, and whether its spans arrive"
DESCRIPTION = """unladen runs the same service bare and instrumented under the same load, in
interleaved rounds on fresh processes, and prints the cost with an interval on
every difference, or says that it cannot tell."""
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}
COMPLETIONS = {
    "bash": "usr/share/bash-completion/completions/unladen",
    "zsh": "usr/share/zsh/vendor-completions/_unladen",
    "fish": "usr/share/fish/vendor_completions.d/unladen.fish",
}


def run(*command, **options):
    return subprocess.run([str(it) for it in command], check=True, capture_output=True, text=True, **options).stdout


def epoch():
    given = os.environ.get("SOURCE_DATE_EPOCH")
    return int(given or run("git", "log", "-1", "--format=%ct", cwd=ROOT))


def mode(name):
    """Executables are what stands in a folder `bin` or `scripts`, or is called unladen; everything else is read."""
    return 0o755 if name.split("/")[-2:-1] in (["bin"], ["scripts"]) or name.endswith("/unladen-bin") else 0o644


def packed(files):
    """`files` (name → bytes) as a .tar.gz: sorted, owned by root, of one date."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.mtime = len(data), mode(name), epoch()
            tar.addfile(entry, io.BytesIO(data))
    return gzip.compress(raw.getvalue(), 9, mtime=0)


def documents(executable):
    """Man pages and completions, as the executable itself makes them."""
    with tempfile.TemporaryDirectory() as folder:
        run(executable, "__man", folder)
        man = {it.name: it.read_bytes() for it in Path(folder).iterdir()}
    return man, {shell: run(executable, "completions", shell).encode() for shell in COMPLETIONS}


def archive(arch, version, binary, man, completions, notices):
    top = f"unladen-{version}-{arch}-linux/"
    files = {top + "bin/unladen": binary, top + "README.md": (ROOT / "README.md").read_bytes(), **{top + k: v for k, v in notices.items()}}
    files |= {f"{top}share/man/man1/{name}": page for name, page in man.items()}
    files |= {top + path.removeprefix("usr/"): completions[shell] for shell, path in COMPLETIONS.items()}
    return f"unladen-{version}-{arch}-linux.tar.gz", packed(files)


def debian(arch, version, binary, man, completions, notices, out):
    name = f"unladen_{version}_{DEBIAN[arch]}.deb"
    doc = "usr/share/doc/unladen/"
    files = {"usr/bin/unladen": binary, doc + "copyright": b"".join(notices.values())}
    files[doc + "changelog.gz"] = gzip.compress((ROOT / "CHANGELOG.md").read_bytes(), 9, mtime=0)
    files |= {f"usr/share/man/man1/{page}.gz": gzip.compress(text, 9, mtime=0) for page, text in man.items()}
    files |= {path: completions[shell] for shell, path in COMPLETIONS.items()}
    size = sum(len(data) for data in files.values()) // 1024
    description = "\n ".join(DESCRIPTION.splitlines())
    files["DEBIAN/control"] = (
        f"Package: unladen\nVersion: {version}\nArchitecture: {DEBIAN[arch]}\nMaintainer: maintainers of unladen <maintainers@unladen.invalid>\n"
        f"Section: devel\nPriority: optional\nInstalled-Size: {size}\nDescription: {SUMMARY}\n {description}\n"
    ).encode()
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        for path, data in files.items():
            file = Path(folder, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
            file.chmod(mode(path))
        for path in [Path(folder), *Path(folder).rglob("*")]:
            if path.is_dir():
                path.chmod(0o755)
        # It takes dates from SOURCE_DATE_EPOCH.
        environment = os.environ | {"SOURCE_DATE_EPOCH": str(epoch())}
        run("dpkg-deb", "--root-owner-group", "--threads-max=1", "-Zxz", "--build", folder, out / name, env=environment)


def wheel(arch, version, binary, notices, bill):
    """A static executable runs on any Linux of its architecture, so the wheel has the tags of both C libraries."""
    tags = [f"py3-none-manylinux_2_17_{arch}", f"py3-none-musllinux_1_1_{arch}"]
    info = f"unladen-{version}.dist-info/"
    files = {f"unladen-{version}.data/scripts/unladen": binary}
    files[info + "WHEEL"] = ("Wheel-Version: 1.0\nGenerator: unladen\nRoot-Is-Purelib: false\n" + "".join(f"Tag: {tag}\n" for tag in tags)).encode()
    header = f"Metadata-Version: 2.4\nName: unladen\nVersion: {version}\nSummary: {SUMMARY}\nLicense-Expression: Apache-2.0\n"
    header += "".join(f"License-File: {name}\n" for name in notices) + "Requires-Python: >=3.8\nDescription-Content-Type: text/markdown\n"
    files[info + "METADATA"] = f"{header}\n{DESCRIPTION}\n".encode()
    files |= {f"{info}licenses/{name}": data for name, data in notices.items()}
    files[info + "sboms/unladen.cdx.json"] = bill
    record = [f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n" for name, data in files.items()]
    files[info + "RECORD"] = ("".join(record) + f"{info}RECORD,,\n").encode()
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as zipped:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100000 | mode(name)) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            zipped.writestr(entry, data, compresslevel=9)
    return f"unladen-{version}-py3-none-manylinux_2_17_{arch}.musllinux_1_1_{arch}.whl", raw.getvalue()


LAUNCHER = b"""#!/bin/sh
# npm links to this file. It becomes the executable of the machine's architecture: no Node.js stays in between.
here=$(dirname "$(readlink -f "$0")")
exec "$here/../$(uname -m)/unladen-bin" "$@"
"""


def npm(version, binaries, notices):
    manifest = {
        "name": "unladen",
        "version": version,
        "description": SUMMARY,
        "license": "Apache-2.0",
        "bin": {"unladen": "bin/unladen"},
        "os": ["linux"],
        "cpu": [{"x86_64": "x64", "aarch64": "arm64"}[arch] for arch in binaries],
    }
    files = {"package/package.json": json.dumps(manifest, indent=2).encode() + b"\n", "package/bin/unladen": LAUNCHER}
    files["package/README.md"] = (ROOT / "README.md").read_bytes()
    files |= {f"package/{arch}/unladen-bin": binary for arch, binary in binaries.items()}
    files |= {f"package/{name}": data for name, data in notices.items()}
    return f"unladen-{version}.tgz", packed(files)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("binaries", nargs="+", metavar="ARCH=PATH", help="x86_64=PATH or aarch64=PATH")
    arguments = parser.parse_args()
    paths = dict(it.split("=", 1) for it in arguments.binaries)
    unknown = paths.keys() - DEBIAN.keys()
    if unknown:
        parser.error(f"{', '.join(unknown)}: the architectures are {', '.join(DEBIAN)}")
    binaries = {arch: Path(path).read_bytes() for arch, path in paths.items()}

    packages = sbom.shipped(ROOT)
    version = next(it["version"] for it in packages if it["name"] == "unladen")
    bill = sbom.cyclonedx(packages, version, epoch())
    notices = {"LICENSE": (ROOT / "LICENSE").read_bytes(), "THIRD-PARTY-LICENSES": sbom.licences(packages)}
    man, completions = documents(Path(next(iter(paths.values()))).resolve())

    out = arguments.out
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    files = dict([npm(version, binaries, notices)])
    files[f"unladen-{version}.cdx.json"] = bill
    for arch, binary in binaries.items():
        files |= dict([archive(arch, version, binary, man, completions, notices), wheel(arch, version, binary, notices, bill)])
        debian(arch, version, binary, man, completions, notices, out)
    for name, data in files.items():
        (out / name).write_bytes(data)
    made = sorted(out.iterdir())
    sums = [f"{hashlib.sha256(it.read_bytes()).hexdigest()}  {it.name}\n" for it in made]
    (out / "SHA256SUMS").write_text("".join(sums))
    for it in made:
        print(f"{it.stat().st_size / 2**20:7.1f} MiB  {it.name}")


if __name__ == "__main__":
    main()
