"""What the system's tools print, recorded and made up, and what is read out of it.

Each case is two files in ``data/PARSER``: ``CASE.out``, the bytes that were printed, and
``CASE.json``, what they mean.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fimble import system
from fimble.doctor.output import decode_output, without_clixml
from fimble.doctor.tool_output import parse_rocminfo, parse_vulkaninfo, parse_xrt_smi
from fimble.doctor.windows_output import devices_from_pnputil, facts_from_cim

DATA = Path(__file__).parent / "data"


def cim(text: str) -> Any:
    """As on Windows: by way of the question that is put to PowerShell."""

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 0, text, "")

    windows = {"SYSTEMROOT": r"C:\Windows"}
    answer = system.powershell_json("q", run=run, platform="win32", environ=windows)
    return facts_from_cim(answer)


PARSERS: dict[str, Callable[[str], Any]] = {
    "cim": cim,
    "pnputil": devices_from_pnputil,
    "xrt": parse_xrt_smi,
    "rocm": parse_rocminfo,
    "vulkan": parse_vulkaninfo,
}
CASES = sorted(path.relative_to(DATA).with_suffix("") for path in DATA.glob("*/*.out"))


def plain(value: Any) -> Any:
    """As JSON has it."""
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    elif isinstance(value, tuple):
        value = [plain(each) for each in value]
    return json.loads(json.dumps(value))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_printed_is_understood(case: Path) -> None:
    printed = (DATA / case).with_suffix(".out").read_bytes()
    expected = json.loads((DATA / case).with_suffix(".json").read_text(encoding="utf-8"))
    parse = PARSERS[case.parts[0]]
    assert plain(parse(without_clixml(decode_output(printed)))) == expected


def test_every_parser_has_its_cases() -> None:
    assert {case.parts[0] for case in CASES} == set(PARSERS)
    assert all((DATA / case).with_suffix(".json").is_file() for case in CASES)


@given(st.binary(max_size=400), st.sampled_from(sorted(PARSERS)))
def test_noise_is_never_an_error(noise: bytes, parser: str) -> None:
    PARSERS[parser](without_clixml(decode_output(noise)))


@given(st.integers(0, 3000), st.sampled_from(CASES))
def test_an_answer_that_breaks_off_is_never_an_error(count: int, case: Path) -> None:
    printed = (DATA / case).with_suffix(".out").read_bytes()[:count]
    PARSERS[case.parts[0]](without_clixml(decode_output(printed)))


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0\r\x1b\ufeff"), min_size=8))
def test_what_is_decoded_is_what_was_written(text: str) -> None:
    assert decode_output(text.encode("utf-8")) == text
    assert decode_output(b"\xef\xbb\xbf" + text.encode("utf-8")) == text
    assert decode_output(text.encode("utf-16")) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no objects at all", "no objects at all"),
        ('#< CLIXML\n<Objs Version="1"><S S="Error">It_x000A_failed &amp; ended</S></Objs>',
         "\nIt\nfailed & ended"),
        ('#< CLIXML\n<Objs Version="1"><S S="verbose">chatter</S></Objs>rest', "\nrest"),
        ('#< CLIXML\n<Objs Version="1"><S S="Error">cut', "\n"),
    ],
)  # fmt: skip
def test_clixml_says_what_is_meant_for_people(text: str, said: str) -> None:
    assert without_clixml(text) == said
