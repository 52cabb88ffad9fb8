"""How numbers are written: the rules of crates/judge/src/units.rs, so that a README and a report show the same digits."""

import math
from datetime import datetime

MINUS = "−"
KIB, MIB, GIB = 1024.0, 1024.0**2, 1024.0**3
# What a unit that a table asks for makes of the unit of a finding.
UNITS = {
    "µs": {"us": 1.0, "ms": 1e3},
    "ms": {"us": 1e-3, "ms": 1.0},
    "s": {"us": 1e-6, "ms": 1e-3},
    "B": {"B": 1.0},
    "KiB": {"B": 1 / KIB, "B/min": 1 / KIB},
    "MiB": {"B": 1 / MIB, "B/min": 1 / MIB},
    "GiB": {"B": 1 / GIB},
}


class Unknown(Exception):
    """Words that ask for what is not there."""


def factor(own, wanted):
    """From the unit of a finding to the one that is asked for; without one the number stays as it is."""
    if wanted is None:
        return 1.0
    if own not in UNITS[wanted]:
        raise ValueError(f"a number in `{own}` cannot be written in `{wanted}`")
    return UNITS[wanted][own]


def instant(text):
    """Of a time as a journal has it."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def _exponent(value):
    return math.floor(math.log10(max(value, 1e-300)))


def decimals(magnitude, resolution=None, digits=3):
    """Two digits of the resolution if it begins with 1, 2 or 3, else one; without it `digits` digits of the magnitude."""
    if resolution is not None and resolution > 0:
        exponent = _exponent(resolution)
        wanted = int(resolution / 10.0**exponent < 3.55) - exponent
    elif magnitude:
        wanted = digits - 1 - _exponent(abs(magnitude))
    else:
        wanted = 0
    most = 5 - _exponent(abs(magnitude)) if magnitude else 3
    return max(0, min(wanted, most, 3))


def number(value, places, signed=False):
    digits = f"{abs(value):,.{places}f}"
    # A number that rounds to zero has no sign.
    if not digits.strip("0.,"):
        return digits
    return (MINUS if value < 0 else "+" if signed else "") + digits


def plain(value, places=None, whole=False):
    """A number by itself, to three digits; what is counted and came out whole is written whole."""
    if places is None:
        places = 0 if whole and value == int(value) else decimals(value)
    return number(value, places)


class Interval:
    """An estimate with the ends of its interval, written with the digits that the width of it allows."""

    def __init__(self, value, low, high, scale=1.0, places=None, counted=False, percent=False):
        scale *= 100 if percent else 1
        self.value, self.low, self.high = (it * scale for it in (value, low, high))
        self.unit = " %" if percent else ""
        self.places = places if places is not None else self._places(percent)
        if counted and all(it == int(it) for it in (self.value, self.low, self.high)):
            self.places = 0

    def _places(self, percent):
        magnitude = max(map(abs, (self.value, self.low, self.high)))
        places = decimals(magnitude, (self.high - self.low) / 2, 2 if percent else 3)
        places = min(places, 2) if percent else places
        # An end that is not 0 must not look like 0 beside a verdict.
        if self.low > 0 or self.high < 0:
            ends = [it for it in (self.low, self.high) if it]
            for more in range(places, min(places + 3, 4)):
                if all(abs(it) >= 0.5 * 10.0**-more for it in ends):
                    return more
        return places

    def point(self, signed=True):
        return number(self.value, self.places, signed) + self.unit

    def ends(self):
        return f"[{number(self.low, self.places)}, {number(self.high, self.places)}]"

    def is_point(self):
        return number(self.low, self.places) == number(self.high, self.places)

    def __str__(self):
        return self.point() if self.is_point() else f"{self.point()} {self.ends()}"


def percent(value, signed=False):
    """A share as per cent, to two digits."""
    value *= 100
    return f"{number(value, decimals(value, None, 2), signed)} %"
