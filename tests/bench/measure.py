"""What all benchmark scripts share: a program's cost, and where and on which commit it was measured."""
import os
import pathlib
import platform
import re
import subprocess
import sys
import time


def measured(command):
    """Runs a program that has to succeed; returns its output, wall and processor seconds, and peak memory in MiB."""
    started = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}")
    return output, time.monotonic() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def machine():
    """Processor and number of cores."""
    model = platform.machine()
    try:
        found = re.search(r"^model name\s*:\s*(.*)$", pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.M)
        model = found.group(1).strip() if found else model
    except OSError:
        pass
    return f"{model}, {os.cpu_count()} cores"


def commit():
    command = ["git", "describe", "--always", "--dirty", "--exclude", "*"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=pathlib.Path(__file__).parent)
    return done.stdout.strip() or "unknown"
