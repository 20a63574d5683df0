"""What .ci/java does on machines with and without Java, apt-get and root; nothing is installed."""

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / ".ci" / "java"
pytestmark = [
    pytest.mark.skipif(not SCRIPT.exists(), reason="the folder .ci is not here"),
    pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash"),
]


def run(folder, programs):
    """Run the script on a PATH that has these programs alone, each a line of shell."""
    for name, line in programs.items():
        program = folder / name
        program.write_text(f"#!{shutil.which('bash')}\n{line}\n")
        program.chmod(0o755)
    return subprocess.run(
        [shutil.which("bash"), str(SCRIPT)],
        env={"PATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


ROOT, USER = {"id": "echo 0"}, {"id": "echo 1000"}
APT = 'echo "$@"; case "$*" in *default-jre*) exit ${STATUS:-0};; esac'


def test_java_is_there(tmp_path):
    done = run(tmp_path, ROOT | {"java": "exit 0", "apt-get": APT})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_root_installs(tmp_path):
    done = run(tmp_path, ROOT | {"apt-get": APT})
    assert done.returncode == 0
    update, install = done.stdout.splitlines()
    assert update.startswith("update")
    assert install.startswith("install")
    assert install.endswith("default-jre-headless")


def test_root_falls_back_and_reports_failure(tmp_path):
    done = run(tmp_path, ROOT | {"apt-get": "STATUS=1\n" + APT})
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1].endswith("openjdk-17-jre-headless")
    assert run(tmp_path, ROOT | {"apt-get": "exit 7"}).returncode == 7


@pytest.mark.parametrize("programs", [USER | {"apt-get": APT}, ROOT])
def test_otherwise_it_says_so(tmp_path, programs):
    done = run(tmp_path, programs)
    assert (done.returncode, done.stdout) == (0, "")
    assert "there is no java" in done.stderr
