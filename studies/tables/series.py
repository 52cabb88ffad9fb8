"""What is kept of a study: a row for each file of findings, and what unladen warned of when it was measured."""

from findings import load
from written import instant


def table(folder):
    files = sorted((folder / "results").glob("*.json"))
    lines = [
        "| findings | begun, UTC | unladen | seed | rounds | runs that count | lasted | the file lacks |",
        "|:--|:--|:--|--:|--:|--:|--:|:--|",
    ]
    notices, designs, commands = [], [], []
    for path in files:
        content, kept = load(path).all, load(path).all.get("kept", {})
        host, name = content["host"], f"[{path.stem}](results/{path.name})"
        begun = instant(host["started"])
        lines.append(
            f"| {name} | {begun:%Y-%m-%d %H:%M} | {commit(host)} | {host['seed']} | {content['rounds']} | {runs(content)} | "
            f"{lasted(content, begun)} | {', '.join(load(path).lacks()) or 'nothing'} |"
        )
        if kept.get("command"):
            commands.append(f"{path.stem}: {kept['command']}")
        if content.get("design"):
            designs.append(f"{path.stem}: {content['design']['words']}")
        notices += [f"- {path.stem}: {text}" for text in warnings(content)]
    text = "\n\n".join(["\n".join(lines), *designs])
    if commands:
        text += "\n\n```\n" + "\n".join(commands) + "\n```"
    if notices:
        text += "\n\nWhat unladen warns of:\n\n" + "\n".join(notices)
    return text


def commit(host):
    commit, _, dirty = host.get("commit", "").partition("-")
    return f"`{commit[:7]}`{', dirty' if dirty else ''}" if commit else f"{host['unladen']}, commit not recorded"


def runs(content):
    """Of the variants; the list of runs has the baseline's as well."""
    if content.get("runs"):
        return f"{sum(it['counts'] for it in content['runs'])} of {len(content['runs'])}"
    counts = [sum(it[key] for it in content["variants"]) for key in ("valid_runs", "runs")]
    return f"{counts[0]} of {counts[1]}, without the baseline's"


def lasted(content, begun):
    seconds = content.get("kept", {}).get("duration_s")
    if seconds:
        return f"{seconds / 60:.0f} min"
    if not content.get("runs"):
        return "not recorded"
    last = max(instant(it["started"]) for it in content["runs"])
    return f"over {(last - begun).total_seconds() / 60:.0f} min"


def warnings(content):
    """Refusals and warnings; of a kind with several texts the first, and how many more."""
    kinds = {}
    for notice in content.get("notices", []):
        if notice["severity"] != "note" or notice["code"] in ("rounds_repeated", "runs_repeated", "no_placebo"):
            kinds.setdefault(notice["code"], []).append(notice["text"])
    for texts in kinds.values():
        more = f" (and {len(texts) - 1} more of the kind)" if len(texts) > 1 else ""
        yield f"{texts[0]}{more}"
