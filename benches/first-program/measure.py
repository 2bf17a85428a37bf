"""Measures the first build of the README's program beside the same program without verger: CPU time, and size of the binary.

    python3 benches/first-program/measure.py

Both are packages outside of the workspace, with the dependencies that a user writes and the versions of the workspace's lockfile.
Each build begins with an empty target directory, after `cargo fetch`. The time is user and system time of all processes of the
build, so that the number of cores doesn't matter. The binaries are as cargo leaves them, with their symbols.
"""

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# The highest CPU time as a multiple of the program by hand, and the largest binary in MB. The aims are 2.5, 2.5, 45 and 2.4.
LIMITS = {"debug": 2.2, "release": 2.9, "binary debug": 46, "binary release": 3.6}

# How often each program is built, in turns. Other work on the machine only adds CPU time, so the shortest time of a program is taken.
ROUNDS = 2

ROOT = Path(__file__).resolve().parents[2]
BY_HAND = """\
tokio = { version = "1", features = ["macros", "rt-multi-thread", "signal", "time"] }
tokio-util = "0.7"
tracing = "0.1"
tracing-subscriber = "0.3"
"""


def readme_dependencies():
    """Returns the dependencies that the README tells users to write, with the path of this tree."""
    readme = (ROOT / "README.md").read_text()
    written = re.search(r"^```toml\n\[dependencies\]\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    return written[1].replace('"../verger"', f'"{ROOT}"')


def cargo(folder, *arguments):
    environment = {**os.environ, "CARGO_INCREMENTAL": "0"}
    subprocess.run(["cargo", *arguments], cwd=folder, env=environment, check=True)


def cpu_seconds():
    """Returns the CPU time of all processes that have been waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def build(folder, *options):
    """Builds a package from nothing, and returns the CPU seconds and the size of the binary in MB."""
    target = folder / "target"
    before = cpu_seconds()
    cargo(folder, "build", "--offline", "--quiet", "--target-dir", target, *options)
    took = cpu_seconds() - before
    (binary,) = target.glob("*/program")
    size = binary.stat().st_size / 1e6
    shutil.rmtree(target)
    return took, size


def package(folder, source, dependencies):
    """Creates a package and fetches its dependencies."""
    (folder / "src").mkdir(parents=True)
    shutil.copy(source, folder / "src/main.rs")
    shutil.copy(ROOT / "Cargo.lock", folder)
    manifest = '[package]\nname = "program"\nedition = "2024"\n\n[workspace]\n\n[dependencies]\n'
    (folder / "Cargo.toml").write_text(manifest + dependencies)
    cargo(folder, "fetch", "--quiet")
    return folder


def measure():
    """Returns the figures of both programs, by column."""
    figures = {"by hand": {}, "verger": {}}
    # Outside of the tree, whose `.cargo/config.toml` has other profiles.
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        packages = {
            "by hand": package(folder / "by-hand", ROOT / "benches/first-program/by_hand.rs", BY_HAND),
            "verger": package(folder / "verger", ROOT / "examples/hello.rs", readme_dependencies()),
        }
        for profile, options in {"debug": [], "release": ["--release"]}.items():
            for _ in range(ROUNDS):
                for program, measured in figures.items():
                    seconds, size = build(packages[program], *options)
                    measured[profile] = min(seconds, measured.get(profile, seconds))
                    measured[f"binary {profile}"] = size
    return figures


def row(name, cells):
    print(f"| {name} | " + " | ".join(cells) + " |")


def main():
    figures = measure()
    unit = {column: "MB" if column.startswith("binary") else "s" for column in LIMITS}
    ratio = {column: figures["verger"][column] / figures["by hand"][column] for column in LIMITS}
    limited = {column: figures["verger"][column] if unit[column] == "MB" else ratio[column] for column in LIMITS}
    row("", LIMITS)
    row("---", ["---:"] * len(LIMITS))
    for program, measured in figures.items():
        row(program, (f"{measured[column]:.1f} {unit[column]}" for column in LIMITS))
    row("ratio", (f"{ratio[column]:.2f} ×" for column in LIMITS))
    row("limit", (f"{limit} {unit[column].replace('s', '×')}" for column, limit in LIMITS.items()))
    exceeded = [column for column, limit in LIMITS.items() if limited[column] > limit]
    if exceeded:
        sys.exit(f"the first program exceeds its limit of {', '.join(exceeded)}: see benches/README.md")


main()
