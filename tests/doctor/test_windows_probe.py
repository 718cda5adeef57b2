"""How Windows is asked, with its tools' recorded outputs in place of the tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fimble import system
from fimble.doctor import probe_devices
from fimble.doctor.output import decode_output
from fimble.doctor.probe_devices import look_for_devices
from fimble.doctor.programs import ProgramOutput
from fimble.doctor.windows_output import QUERY

DATA = Path(__file__).parent / "data"
STRIX = "1022:17f0"


def recorded(case: str) -> str:
    return decode_output((DATA / f"{case}.out").read_bytes())


class Windows:
    """``answer`` is PowerShell's; ``tools`` what programs print, by name."""

    def __init__(self, answer: Any, tools: dict[str, ProgramOutput]) -> None:
        self.answer = answer
        self.tools = tools
        self.asked: list[str] = []

    def install(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(system, "powershell_json", lambda query, **options: self.answer)
        patch.setattr(probe_devices, "_ask", self.ask)

    def ask(self, name: str, arguments: tuple[str, ...], place: Path) -> ProgramOutput | None:
        self.asked.append(f"{name} {' '.join(arguments)}")
        assert place.parts[-1] in ("System32", "AMD")
        if name == "pnputil" and "/drivers" in arguments and "old" in self.tools:
            return self.tools["old"]
        return self.tools.get(name)


def answer_of(case: str) -> Any:
    text = recorded(f"cim/{case}")
    return json.loads(text.split("<<fimble")[1].split("fimble>>")[0])


@pytest.mark.parametrize(
    ("answer", "tools", "npus", "problems"),
    [
        (answer_of("strix"), {}, [(STRIX, "32.0.203.329")], []),
        (None, {"pnputil": ProgramOutput(recorded("pnputil/strix"), "", 0)},
         [(STRIX, "32.0.203.329")], ["PowerShell did not tell of devices"]),
        (None, {"old": ProgramOutput(recorded("pnputil/usage"), "", 1),
                "pnputil": ProgramOutput(recorded("pnputil/without_versions"), "", 0),
                "xrt-smi": ProgramOutput(recorded("xrt/windows_colours"), "", 0)},
         [(STRIX, "32.0.203.280")], ["PowerShell did not tell of devices"]),
        (answer_of("other_makers"), {"pnputil": ProgramOutput(recorded("pnputil/intel"), "", 0)},
         [], []),
        (answer_of("strix"), {"xrt-smi": ProgramOutput(code=None, problem="xrt-smi hangs")},
         [(STRIX, "32.0.203.329")], ["xrt-smi hangs"]),
        (None, {}, [], ["PowerShell did not tell of devices"]),
    ],
    ids=["CIM", "pnputil", "an old pnputil and xrt-smi", "no AMD NPU", "xrt-smi hangs", "nothing"],
)  # fmt: skip
def test_windows_is_asked_until_something_tells(
    monkeypatch: pytest.MonkeyPatch,
    answer: Any,
    tools: dict[str, ProgramOutput],
    npus: list[tuple[str, str]],
    problems: list[str],
) -> None:
    Windows(answer, tools).install(monkeypatch)
    facts = look_for_devices("windows")
    found = [each for each in facts.devices if each.kind == "npu"]
    assert [(f"{each.vendor}:{each.device}", each.driver_version) for each in found] == npus
    assert list(facts.problems) == problems
    assert facts.nodes is None and facts.vulkan_library is None


def test_pnputil_is_not_asked_where_cim_told(monkeypatch: pytest.MonkeyPatch) -> None:
    windows = Windows(answer_of("strix"), {})
    windows.install(monkeypatch)
    look_for_devices("windows")
    assert windows.asked == ["xrt-smi examine"]


def test_the_question_survives_a_command_line() -> None:
    """A double quote would end the argument, and a line break the command."""
    assert '"' not in QUERY and "\n" not in QUERY
    assert QUERY.count("(") == QUERY.count(")") and QUERY.count("{") == QUERY.count("}")
