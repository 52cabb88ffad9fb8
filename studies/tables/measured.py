"""What a series says of itself: when, where and with what it was measured. The aspects of `findings.py` that name no variant."""

import re

from written import Unknown, instant, number, plain


def load(asked, key):
    return plain(asked.findings.all["load"][key], asked.places, whole=True)


def pacing(asked):
    return asked.findings.all["load"]["pacing"]


def level(asked):
    levels = [it["level"] for variant in asked.findings.all["variants"] for it in variant["metrics"] if it.get("level")]
    # Most findings have all rounds; the smallest level is that of the fewest.
    return f"{number(min(levels) * 100, 1)} %"


def notice(asked, code):
    found = [it["text"] for it in asked.findings.all.get("notices", []) if it["code"] == code]
    if not found:
        raise Unknown(f"`{asked.words}`: there is no notice `{code}`")
    return "; ".join(found)


def begun(asked):
    """The day, as `26 November 2026`."""
    when = instant(asked.findings.all["host"]["started"])
    return f"{when.day} {when:%B %Y}"


def host(asked):
    """`2 cores of an AMD EPYC virtual machine, Debian GNU/Linux 12 (bookworm), Linux 6.18`."""
    it = asked.findings.all["host"]
    cpu = it["cpu"].replace("(R)", "").removesuffix(" Processor").strip()
    machine = " virtual machine" if it.get("virtualisation") else ""
    kernel = ".".join(it["kernel"].split("-")[0].split(".")[:2])
    return f"{it['cores']} cores of {'an' if cpu[0] in 'AEIOU' else 'a'} {cpu}{machine}, {it['distribution']}, Linux {kernel}"


def unladen(asked):
    """Version and commit of what measured."""
    it = asked.findings.all["host"]
    return f"{it['unladen']}, commit `{it['commit'][:7]}`" if it.get("commit") else it["unladen"]


def pin(asked, package):
    """The version of a package, as it was pinned in the commit that was measured: `keep.py` keeps it."""
    pins = asked.findings.all.get("kept", {}).get("pins", {})
    if package not in pins:
        raise Unknown(
            f"`{asked.words}`: the findings have no version of {package}. `studies/parts/keep.py` keeps those that a page asks for, from the files "
            "that the study's README names (`<!-- pins FILE… -->`)"
        )
    return pins[package]


def toolchain(asked, name):
    """`Python 3.11.7`, as the program says of itself; of Go, which says more, `Go 1.26.8`."""
    return re.sub(r"^go version go(\S+) .*", r"Go \1", asked.findings.all["host"]["toolchains"][name])
