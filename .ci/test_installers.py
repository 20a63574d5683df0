"""What .ci/java and .ci/chromium do on machines with and without apt-get and root.

Nothing is installed: apt-get is a line of shell that says what it was asked for.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
both = pytest.mark.parametrize(
    ("script", "package"), [("java", "default-jre-headless"), ("chromium", "chromium")]
)


def run(script, folder, programs):
    """Run a script on a PATH that has these programs alone, each a line of shell."""
    for name, line in programs.items():
        program = folder / name
        program.write_text(f"#!{shutil.which('bash')}\n{line}\n")
        program.chmod(0o755)
    return subprocess.run(
        [shutil.which("bash"), str(FOLDER / script)],
        env={"PATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


ROOT, USER = {"id": "echo 0"}, {"id": "echo 1000"}
APT = 'echo "$@"; case "$*" in *default-jre*) exit ${STATUS:-0};; esac'


@pytest.mark.parametrize(
    ("script", "program"),
    [("java", "java"), ("chromium", "chromium"), ("chromium", "google-chrome")],
)
def test_nothing_is_done_where_it_is_there(script, program, tmp_path):
    done = run(script, tmp_path, ROOT | {program: "exit 0", "apt-get": APT})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@both
def test_root_installs(script, package, tmp_path):
    done = run(script, tmp_path, ROOT | {"apt-get": APT})
    assert done.returncode == 0
    update, install = done.stdout.splitlines()
    assert update.startswith("update")
    assert install.startswith("install")
    assert install.endswith(f" {package}")


def test_java_falls_back_and_reports_failure(tmp_path):
    done = run("java", tmp_path, ROOT | {"apt-get": "STATUS=1\n" + APT})
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1].endswith("openjdk-17-jre-headless")
    assert run("java", tmp_path, ROOT | {"apt-get": "exit 7"}).returncode == 7


def test_chromium_goes_on_after_failure(tmp_path):
    done = run("chromium", tmp_path, ROOT | {"apt-get": "exit 7"})
    assert (done.returncode, done.stdout) == (0, "")
    assert "there is no chromium, and apt-get could not install it" in done.stderr


@both
@pytest.mark.parametrize("programs", [USER | {"apt-get": APT}, ROOT])
def test_otherwise_it_says_so(script, package, programs, tmp_path):
    done = run(script, tmp_path, programs)
    assert (done.returncode, done.stdout) == (0, "")
    assert f"there is no {script}" in done.stderr
