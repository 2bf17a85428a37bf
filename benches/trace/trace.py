"""Counts the functions and source files of verger that run during one event in `program.rs`.

    gdb --batch -nx -x benches/trace/trace.py --args target/debug/examples/trace restart

runs the program twice, with the event `failure` (the default), `stop` or `restart`, and with the event `nothing`. The result is
what the first run executes between its markers beyond the second. TRACE_CALLS=1 also lists each function with its calls.

A debug build inlines nothing, so that there can be a breakpoint on every function. Only functions whose source is in `src` are
counted. A closure and the copies of a generic function are the same function, and each call of one of them is a call of it.
"""

import os
import re
import subprocess
from collections import Counter
from pathlib import Path

import gdb

# The highest numbers of functions, files and calls. The aim for a failure is 220, 48 and 480.
LIMITS = {"failure": (255, 50, 476)}

TOTALS = ("functions", "files", "calls")
SOURCES = Path(__file__).resolve().parents[2] / "src"


class CallCounter(gdb.Breakpoint):
    """Counts the calls of the function at an address."""

    def __init__(self, address, function, calls):
        super().__init__(f"*{address:#x}", internal=True)
        self.function, self.calls = function, calls

    def stop(self):
        self.calls[self.function] += 1
        return False


def symbols(program):
    """Yields the address in the file and the name of each function."""
    listed = subprocess.run(["nm", "--demangle", program], check=True, capture_output=True, text=True).stdout
    for address, name in re.findall(r"^([0-9a-f]+) [tTwW] (.+)$", listed, re.MULTILINE):
        yield int(address, 16), name


def function_name(name):
    """Returns the name of a function without closures in it and without generic arguments."""
    name = name.split("::{{closure}}")[0]
    while (shorter := re.sub(r"(?<=\w)(::)?<(?!impl )[^<>]*>", "", name)) != name:
        name = shorter
    return name


def source_file(address):
    """Returns the file in `src` that defines the function at an address, or None."""
    table = gdb.find_pc_line(address).symtab
    file = Path(table.fullname()) if table else Path()
    return str(file.relative_to(SOURCES)) if file.is_relative_to(SOURCES) else None


def load_address(program):
    """Returns the address to which the system has loaded the running program."""
    maps = Path(f"/proc/{gdb.selected_inferior().pid}/maps").read_text().splitlines()
    return next(int(line.split("-")[0], 16) for line in maps if line.endswith(program))


def continue_to(location, command):
    """Lets the program run until it reaches a location."""
    point = gdb.Breakpoint(location, internal=True)
    point.silent = True
    gdb.execute(command, to_string=True)
    assert point.hit_count == 1, f"the program never reaches {location}"
    point.delete()


def trace(program, event):
    """Runs the program, and returns the calls of each function between the markers."""
    gdb.execute(f"set args {event}")
    continue_to("main", "run")
    start, calls = load_address(program), Counter()
    functions = [(start + address, name) for address, name in symbols(program)]
    (begin,) = (address for address, name in functions if name == "trace::begin_trace")
    (end,) = (address for address, name in functions if name == "trace::end_trace")
    continue_to(f"*{begin:#x}", "continue")
    counters = [
        CallCounter(address, (file, function_name(name)), calls)
        for address, name in functions
        if "verger" in name and (file := source_file(address))
    ]
    continue_to(f"*{end:#x}", "continue")
    for counter in counters:
        counter.delete()
    gdb.execute("kill", to_string=True)
    return calls


def main():
    # The second one speeds up thousands of breakpoints.
    for setting in ("confirm off", "breakpoint always-inserted on"):
        gdb.execute(f"set {setting}")
    program = os.path.realpath(gdb.current_progspace().filename)
    # gdb.parameter("args") doesn't have the arguments of the command line.
    event = gdb.execute("show args", to_string=True).split('"')[1] or "failure"
    calls = trace(program, event) - trace(program, "nothing")
    if os.environ.get("TRACE_CALLS"):
        for (file, name), count in sorted(calls.items()):
            print(f"{count:5}  {file}  {name}")
    files = Counter(file for file, _ in calls)
    for file, functions in sorted(files.items()):
        print(f"{functions:5}  src/{file}")
    failed = False
    for what, total, limit in zip(TOTALS, (len(calls), len(files), calls.total()), LIMITS.get(event, (None,) * 3)):
        print(f"{total:5}  {what}" + (f", at most {limit}" if limit else ""))
        failed |= limit is not None and total > limit
    if failed:
        print(f"the trace of the event `{event}` exceeds a limit: see benches/README.md")
    return int(failed)


code = 2
try:
    code = main()
finally:
    # gdb would exit with 0 after an exception.
    gdb.execute(f"quit {code}")
