"""What an executable of unladen is made of, from `cargo metadata`: a bill of materials (CycloneDX) and the licences.

    scripts/dist/sbom.py        # holds all dependencies to the licences of deny.toml, for machines without cargo-deny
"""

import datetime
import hashlib
import json
import re
import subprocess
import sys
import tomllib
import uuid
from collections import Counter
from pathlib import Path


def read_metadata(root, *options):
    command = ["cargo", "metadata", "--format-version", "1", "--locked", *options]
    return json.loads(subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout)


def shipped(root):
    """Packages of which code gets into the executable: normal dependencies, and what build scripts of our own put in (plotly.js)."""
    metadata = read_metadata(root, "--filter-platform", "x86_64-unknown-linux-musl")
    packages = {it["id"]: it for it in metadata["packages"]}
    nodes = {it["id"]: it for it in metadata["resolve"]["nodes"]}
    members = set(metadata["workspace_members"])
    open_ids = [next(it for it in members if packages[it]["name"] == "unladen")]
    seen = set(open_ids)
    while open_ids:
        here = open_ids.pop()
        for dependency in nodes[here]["deps"]:
            kinds = {it["kind"] for it in dependency["dep_kinds"]}
            wanted = None in kinds or ("build" in kinds and here in members)
            if wanted and dependency["pkg"] not in seen:
                seen.add(dependency["pkg"])
                open_ids.append(dependency["pkg"])
    return sorted((packages[it] for it in seen), key=lambda it: (it["name"], it["version"]))


def expression(package):
    """The licence as SPDX has it: a slash was the way to say OR."""
    return (package["license"] or "NOASSERTION").replace(" / ", "/").replace("/", " OR ")


def cyclonedx(packages, version, epoch):
    """https://cyclonedx.org/docs/1.5/json/"""
    def component(package):
        url = f"pkg:cargo/{package['name']}@{package['version']}"
        entry = {"type": "library", "bom-ref": url, "name": package["name"], "version": package["version"]}
        return entry | {"licenses": [{"expression": expression(package)}], "purl": url}

    components = [component(it) for it in packages if it["source"]]
    identity = json.dumps(components, sort_keys=True) + version
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, identity)}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {"type": "application", "name": "unladen", "version": version, "licenses": [{"expression": "Apache-2.0"}]},
        },
        "components": components,
    }
    return json.dumps(bill, indent=1).encode() + b"\n"


def licences(packages):
    """The licence files of all packages, each text once, with the packages that have it."""
    texts = {}
    for package in packages:
        if not package["source"]:
            continue
        name = f"{package['name']} {package['version']}"
        folder = Path(package["manifest_path"]).parent
        files = [it for it in folder.iterdir() if it.is_file() and it.name.upper().startswith(("LICEN", "COPYING", "NOTICE", "UNLICENSE"))]
        for file in sorted(files):
            text = file.read_text(errors="replace").strip()
            texts.setdefault(hashlib.sha256(" ".join(text.split()).encode()).hexdigest(), (text, []))[1].append(name)
        if not files:
            texts.setdefault(package["license"], (f"Licence: {expression(package)}", []))[1].append(name)
    parts = [f"{', '.join(names)}\n{'-' * 79}\n{text}\n" for text, names in texts.values()]
    return ("\n" + ("=" * 79 + "\n").join(parts)).encode()


def allows(licence, allowed):
    """Whether an SPDX expression can be met by allowed licences: as Python's own `or`, `and` and brackets."""
    words = re.findall(r"[()]|[^\s()]+(?: WITH [^\s()]+)?", licence)
    python = {"OR": "or", "AND": "and", "(": "(", ")": ")"}
    return eval(" ".join(python.get(word, str(word in allowed)) for word in words), {"__builtins__": {}})


def main():
    root = Path(__file__).resolve().parents[2]
    rules = tomllib.loads((root / "deny.toml").read_text())["licenses"]
    exceptions = {it["crate"]: it["allow"] for it in rules["exceptions"]}
    packages = [it for it in read_metadata(root)["packages"] if it["source"]]
    refused = [it for it in packages if not allows(expression(it), rules["allow"] + exceptions.get(it["name"], []))]
    for package in refused:
        print(f"{package['name']} {package['version']}: {expression(package)} is not allowed by deny.toml", file=sys.stderr)
    counted = Counter(it["name"] for it in packages)
    twice = sorted(name for name, count in counted.items() if count > 1)
    print(f"{len(packages)} packages, {len(refused)} with a licence that is not allowed; in several versions: {', '.join(twice)}")
    sys.exit(bool(refused))


if __name__ == "__main__":
    main()
