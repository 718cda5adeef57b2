"""The installed onnxruntime-genai: none, two, one that cannot be imported."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fimble.doctor.devices import Device
from fimble.doctor.programs import ProgramOutput
from fimble.doctor.runtime import (
    ImportFacts,
    install_line,
    parse_import,
    probe_import,
    runtime_checks,
)
from fimble.models.runtimes import DISTRIBUTIONS, find_runtime

CPU = [("onnxruntime-genai", "0.18.0")]
RADEON = Device("gpu", "Radeon", "1002", "744c")
NVIDIA = Device("gpu", "GeForce", "10de", "2684")


def test_the_real_one_can_be_imported(tmp_path: Path) -> None:
    imported = probe_import(tmp_path)
    assert imported.problem == ""
    assert find_runtime().version.startswith(imported.version)
    checks = runtime_checks(CPU, imported, "linux")
    assert [(check.name, check.status) for check in checks] == [
        ("runtime", "ok"),
        ("runtime import", "ok"),
    ]


def test_a_module_in_the_current_directory_is_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, private = tmp_path / "workspace", tmp_path / "private"
    workspace.mkdir()
    private.mkdir()
    mark = tmp_path / "mark"
    for name in ("onnxruntime_genai", "json"):
        code = f"open({str(mark)!r}, 'w').close()\n"
        (workspace / f"{name}.py").write_text(code, encoding="utf-8", newline="\n")
    monkeypatch.chdir(workspace)
    assert probe_import(private).problem == ""
    assert not mark.exists()


@pytest.mark.parametrize(
    ("here", "devices", "release", "line"),
    [
        ("linux", [], "", "pip install 'fimble[cpu]'"),
        ("linux", [RADEON], "", "pip install 'fimble[cpu]'"),
        ("linux", [NVIDIA], "", "pip install 'fimble[cuda]'"),
        ("macos", [], "", "pip install 'fimble[cpu]'"),
        ("windows", [], "", "pip install 'fimble[cpu]'"),
        ("windows", [RADEON], "", "pip install 'fimble[directml]'"),
        ("windows", [NVIDIA], "", "pip install 'fimble[directml]'"),
        ("windows", [RADEON], "1.7.1", "conda activate ryzen-ai-1.7.1"),
    ],
)  # fmt: skip
def test_none_fails_with_the_line_for_this_machine(
    here: str, devices: list[Device], release: str, line: str
) -> None:
    assert line in install_line(here, devices, release)  # type: ignore[arg-type]
    (check,) = runtime_checks([], None, here, devices, release)  # type: ignore[arg-type]
    assert (check.name, check.status) == ("runtime", "fail")
    assert line in check.next_step


@pytest.mark.parametrize("second", DISTRIBUTIONS[1:])
def test_two_fail_and_both_are_named(second: str) -> None:
    (check,) = runtime_checks([*CPU, (second, "0.13.1")], ImportFacts("0.13.1"), "linux")
    assert check.status == "fail"
    assert "onnxruntime-genai 0.18.0" in check.detail and f"{second} 0.13.1" in check.detail
    assert f"pip uninstall -y onnxruntime-genai {second}" in check.next_step


@pytest.mark.parametrize(
    ("version", "status"),
    [("0.11.2", "ok"), ("0.11.1", "warn"), ("0.9.0", "warn"), ("1.0", "ok"), ("0.14.0.dev1", "ok")],
)
def test_one_that_is_older_than_what_is_tested(version: str, status: str) -> None:
    (check,) = runtime_checks([("onnxruntime-genai", version)], None, "linux")
    assert check.status == status


MARK = "fimble-runtime "


@pytest.mark.parametrize(
    ("said", "version", "problem"),
    [
        (ProgramOutput(MARK + '{"version": "0.11.2", "providers": ["dml"]}\n', "", 0),
         "0.11.2", ""),
        (ProgramOutput("noise\n" + MARK + '{"version": "0.18.0", "providers": []}\nOGA Error: 1 '
                       "instances were leaked\n", "more noise", 0), "0.18.0", ""),
        (ProgramOutput("", "Traceback (most recent call last):\nImportError: DLL load failed while "
                       "importing onnxruntime_genai: Das angegebene Modul wurde nicht gefunden.\n",
                       1),
         "", "ImportError: DLL load failed while importing onnxruntime_genai: Das angegebene "
         "Modul wurde nicht gefunden."),
        (ProgramOutput("", "", -11), "", "the process ended with code -11"),
        (ProgramOutput("", "", 0xC0000409), "", "the process ended with code 0xC0000409"),
        (ProgramOutput("", "", -1073741819), "", "the process ended with code 0xC0000005"),
        (ProgramOutput("", "", 0), "", "the process ended with code 0"),
        (ProgramOutput("", "", None, "python did not end within 90 s"), "",
         "python did not end within 90 s"),
        (ProgramOutput(MARK + "{broken\n", "", 0), "", "the process ended with code 0"),
        (ProgramOutput(MARK + '{"version": "1"}\n', "", 0), "", "the process ended with code 0"),
    ],
)  # fmt: skip
def test_what_the_import_printed(said: ProgramOutput, version: str, problem: str) -> None:
    imported = parse_import(said)
    assert (imported.version, imported.problem) == (version, problem)


def test_what_cannot_be_imported_fails() -> None:
    broken = ImportFacts(problem="ImportError: DLL load failed while importing onnxruntime_genai")
    *_, windows = runtime_checks(CPU, broken, "windows")
    *_, linux = runtime_checks(CPU, broken, "linux")
    assert windows.status == linux.status == "fail"
    assert "Visual C++" in windows.next_step
    assert "--force-reinstall onnxruntime-genai" in linux.next_step


def test_the_interpreter_is_the_one_that_runs_the_engine() -> None:
    assert Path(sys.executable).is_absolute()
