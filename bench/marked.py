"""What the benches share: the part of a page that one of them writes, and what the machine is called."""

import os
import platform
import re
from pathlib import Path


def write(page, part, text):
    """Puts text between `<!-- PART: begin -->` and `<!-- PART: end -->` of a page."""
    begin, end = f"<!-- {part}: begin -->", f"<!-- {part}: end -->"
    head, rest = page.read_text().split(begin)
    page.write_text(f"{head}{begin}\n\n{text}\n\n{end}{rest.split(end)[1]}")


def machine():
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return f"{model[1] if model else platform.machine()}, {os.cpu_count()} cores, Linux {platform.release()}"
