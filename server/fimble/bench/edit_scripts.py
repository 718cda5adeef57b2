"""Tasks whose solution is told by running it: a function of the standard library, and a script.

The script runs beside the edited file, which it imports as ``subject``, and must end without an
error. ``old`` is replaced by ``new`` in the function first; a task whose function is another
one in this Python is left out.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SCRIPTED", "Scripted"]


@dataclass(frozen=True, slots=True)
class Scripted:
    """See the module. ``problem`` is what a failing test or a linter would say."""

    kind: str
    module: str
    function: str
    task: str
    script: str
    old: str = ""
    new: str = ""
    problem: str = ""
    instruction: str = ""


_HLS = (
    "from subject import hls_to_rgb as f\n"
    "assert f(0.0, 0.25, 0.0) == (0.25, 0.25, 0.25)\n"
    "assert [round(x, 6) for x in f(0.0, 0.5, 1.0)] == [1.0, 0.0, 0.0]\n"
    "assert [round(x, 6) for x in f(0.0, 0.75, 1.0)] == [1.0, 0.5, 0.5]\n"
)
_MULTIMODE = (
    "from subject import multimode as f\n"
    "assert f('aabbbbbbbbcc') == ['b'] and f('') == []\n"
    "assert f('aabbbbccddddeeffffgg') == ['b', 'd', 'f']\n"
)
_FORMATDAY = (
    "from subject import TextCalendar as T\n"
    "assert T().formatday(0, 1, 4) == '    ' and T().formatday(7, 1, 4) == '  7 '\n"
)
_PREVMONTH = (
    "from subject import _prevmonth as f\n"
    "assert f(2020, 1) == (2019, 12) and f(2020, 5) == (2020, 4)\n"
)

SCRIPTED = (
    # --- bugs that a test catches -----------------------------------------------------------
    Scripted(
        "fix a bug", "colorsys", "hls_to_rgb", "fix", _HLS,
        "return l, l, l", "return l, l",
        "ValueError: not enough values to unpack (expected 3, got 2) in hls_to_rgb(0.0, 0.25, 0.0)",
    ),
    Scripted(
        "fix a bug", "statistics", "multimode", "fix", _MULTIMODE,
        "count == maxcount", "count != maxcount",
        "AssertionError: multimode('aabbbbbbbbcc') gives ['a', 'c'], not ['b']",
    ),
    Scripted(
        "fix a bug", "calendar", "_prevmonth", "fix", _PREVMONTH,
        "return year-1, 12", "return year+1, 12",
        "AssertionError: _prevmonth(2020, 1) gives (2021, 12), not (2019, 12)",
    ),
    Scripted(
        "fix a bug", "calendar", "timegm", "fix",
        "from subject import timegm as f\nassert f((1970, 1, 2, 3, 4, 5)) == 97445\n",
        "days*24 + hour", "days*24 + hours",
        'undefined name "hours" is used before it is assigned; hour is meant',
    ),
    Scripted(
        "fix a bug", "statistics", "NormalDist.zscore", "fix",
        "from subject import NormalDist as N\nassert N(100, 15).zscore(130) == 2.0\n",
        "(x - self._mu)", "(x + self._mu)",
        "AssertionError: NormalDist(100, 15).zscore(130) gives 15.33, not 2.0",
    ),
    Scripted(
        "fix a bug", "calendar", "Calendar.iterweekdays", "fix",
        "from subject import Calendar as C\n"
        "assert list(C(6).iterweekdays()) == [6, 0, 1, 2, 3, 4, 5]\n",
        "yield i%7", "return i%7",
        "TypeError: iterweekdays() must be an iterator: it returns one number",
    ),
    Scripted(
        "fix a bug", "posixpath", "basename", "fix",
        "from subject import basename as f\nassert f('/a/b.txt') == 'b.txt' and f('c') == 'c'\n",
        "p.rfind(sep) + 1", "p.find(sep) + 1",
        "AssertionError: basename('/a/b.txt') gives 'a/b.txt', not 'b.txt': the last sep counts",
    ),
    Scripted(
        "fix a bug", "calendar", "TextCalendar.formatday", "fix", _FORMATDAY,
        "s.center(width)", "s.centre(width)",
        '"str" has no attribute "centre"; did you mean "center"?',
    ),
    # --- what the user says in words ----------------------------------------------------------
    Scripted(
        "instruction", "calendar", "_nextmonth", "custom",
        "from subject import _nextmonth as f\nassert f(2020, 12) == (2021, 1)\n"
        "try:\n    f(2020, 13)\nexcept ValueError:\n    pass\nelse:\n    raise SystemExit(1)\n",
        instruction="raise ValueError if month is not from 1 to 12",
    ),
    Scripted(
        "instruction", "calendar", "leapdays", "custom",
        "from subject import leapdays as f\nassert f(2000, 2005) == 2 and f(2005, 2000) == 0\n",
        instruction="return 0 if y1 is greater than y2",
    ),
    Scripted(
        "instruction", "string", "capwords", "custom",
        "from subject import capwords as f\nassert f('a bc') == 'A Bc' and f('') == ''\n"
        "assert f(None) == ''\n",
        instruction="return '' if s is None",
    ),
    Scripted(
        "instruction", "posixpath", "splitext", "custom",
        "import subject\nassert subject.splitext('a.py') == ('a', '.py')\n"
        "import inspect\nassert 'path' in inspect.signature(subject.splitext).parameters\n",
        instruction="rename the parameter p to path",
    ),
    Scripted(
        "instruction", "colorsys", "rgb_to_yiq", "custom",
        "from subject import rgb_to_yiq as f\nassert isinstance(f(1, 0, 0), list)\n"
        "assert [round(x, 2) for x in f(1, 0, 0)] == [0.3, 0.6, 0.21]\n",
        instruction="return a list instead of a tuple",
    ),
    Scripted(
        "instruction", "statistics", "median_high", "custom",
        "from subject import median_high as f\nassert f([1, 3, 5, 7]) == 5\n"
        "assert f([]) is None\n",
        instruction="return None for empty data instead of raising an error",
    ),
    # --- to be improved: it must go on working ------------------------------------------------
    Scripted(
        "improve", "calendar", "TextCalendar.formatday", "simplify", _FORMATDAY,
    ),
    Scripted(
        "improve", "calendar", "_prevmonth", "simplify", _PREVMONTH,
    ),
    Scripted(
        "improve", "colorsys", "hls_to_rgb", "rename", _HLS,
    ),
    Scripted(
        "improve", "statistics", "multimode", "rename", _MULTIMODE,
    ),
    Scripted(
        "improve", "genericpath", "commonprefix", "simplify",
        "from subject import commonprefix as f\nassert f([]) == ''\n"
        "assert f(['abc', 'abd']) == 'ab' and f(['a']) == 'a'\n",
    ),
    Scripted(
        "improve", "posixpath", "basename", "errors",
        "from subject import basename as f\nassert f('/a/b.txt') == 'b.txt' and f('c') == 'c'\n",
    ),
)  # fmt: skip
