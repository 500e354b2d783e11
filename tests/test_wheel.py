"""The wheel carries what the package needs and nothing of the tests; it works without the tree."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", build, str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder / done.stdout.split()[-1]


def test_it_holds_every_file_of_the_package_and_no_test(wheel: Path) -> None:
    inside = set(zipfile.ZipFile(wheel).namelist())
    wanted = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "evalkit").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert wanted - inside == set()
    assert "evalkit/py.typed" in inside
    assert not [name for name in inside if name.startswith(("tests/", "golden/", "notebooks/"))]


def test_it_works_without_the_tree(wheel: Path, tmp_path: Path) -> None:
    installed = tmp_path / "installed"
    zipfile.ZipFile(wheel).extractall(installed)
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "import evalkit; assert sys.argv[1] in evalkit.__file__, evalkit.__file__;"
        "from evalkit.judges import load_judge, template_path;"
        "print(load_judge(template_path('faithfulness.en')).kind);"
        "from evalkit.__main__ import main; raise SystemExit(main(['init', sys.argv[2]]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(installed), str(tmp_path / "mine")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("criteria\n")
