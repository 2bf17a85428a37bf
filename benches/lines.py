#!/usr/bin/env python3
"""Counts lines of code by module: without blank lines, comments and tests.

Tests are files and folders named `tests`, modules behind `#[cfg(test)]`, and what those declare.
"""

import re
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEST_ONLY = re.compile(r"#\[cfg\((?:all\()?(?:test|verger_loom)\b")
MODULE = re.compile(r"\s*(?:pub(?:\(\w+\))? )?mod (\w+)\s*([;{])")
COMMENT = {".rs": "//", ".go": "//", ".erl": "%", ".py": "#"}


def count(file, tests):
    """The lines of code in a file. Adds the files of its test modules to `tests`."""
    lines, skip_until, test_only = 0, None, False
    for line in file.read_text().splitlines():
        text = line.strip()
        if skip_until is not None:
            skip_until = None if line == skip_until else skip_until
        elif not text or text.startswith(COMMENT[file.suffix]):
            continue
        elif TEST_ONLY.match(text):
            test_only = True
        elif test_only and text.startswith("#["):
            continue
        elif test_only and (module := MODULE.match(line)):
            test_only = False
            if module[2] == "{" and not text.endswith("}"):
                skip_until = line[: len(line) - len(line.lstrip())] + "}"
            folder = file.parent if file.stem in ("mod", "lib", "main") else file.with_suffix("")
            tests.update({folder / module[1], folder / f"{module[1]}.rs"})
        else:
            test_only = False
            lines += 1
    return lines


def main():
    modules, tests = Counter(), set()
    files = [file for file in ROOT.rglob("*") if file.suffix in COMMENT and "target" not in file.parts]
    for file in sorted(files, key=lambda file: (len(file.parts), file.name != "mod.rs")):
        path = file.relative_to(ROOT)
        is_test = path.stem == "tests" or "tests" in path.parts or tests & {file, *file.parents}
        if path.parts[0] in ("src", "macros", "benches") and not is_test:
            depth = 2 if path.parts[0] in ("src", "benches") else 1
            modules["/".join(path.parts[:depth])] += count(file, tests)
    for top in ("src", "macros", "benches"):
        parts = {name: lines for name, lines in modules.items() if name.split("/")[0] == top}
        print(f"{sum(parts.values()):6}  {top}")
        for name, lines in sorted(parts.items(), key=lambda part: -part[1]):
            if name != top:
                print(f"{lines:6}    {name}")


if __name__ == "__main__":
    sys.exit(main())
