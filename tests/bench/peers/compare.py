#!/usr/bin/env python3
"""The same flows on clustersim, SimGrid and a plain max-min solver: equal completion times, ratios of processor time.

compare.py FOLDER           the whole comparison, some minutes; FOLDER holds the built programs
compare.py FOLDER --quick   small sizes, some seconds
compare.py FOLDER --check   completion times only, against the plain solver (what ctest runs)
Exit code 1 when completion times differ. A ratio below what is asked for is marked and no more: machines differ.
"""
import argparse
import dataclasses
import json
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from measure import commit, machine  # noqa: E402

# Between clustersim and the reference. Completions round up to the next tick, which for LONG flows is far below this.
TOLERANCE = 1e-9
LONG = ["--bytes", "1000000000"]
# With SimGrid the measured runs themselves are compared: a tick is 1e-8 of the time of 1 MB.
TOLERANCE_SIMGRID = 1e-7
LIMIT = 1200  # seconds of a run


@dataclasses.dataclass
class Case:
    name: str
    traffic: str
    simgrid_asked: float = 0  # how many times the processor time of clustersim
    reference_asked: float = 0
    seconds_asked: float = 0  # of clustersim itself, at most
    mib_asked: float = 0
    drivers: tuple = ("hosts",)  # how SimGrid is told to start the flows; the fastest counts
    once: bool = False  # too long to repeat; and SimGrid's second mode is given up when it is no faster than the first
    simgrid: bool = True
    reference: bool = True


RING = "--pattern ring-all-reduce --bytes 1000000000"
POISSON = "--pattern poisson --rounds 4 --load 0.5"
PERMUTATIONS = "--pattern permutation --rounds 4 --jitter 0.5"
ALL_TO_ALL = "--pattern all-to-all --jitter 0.5"
EQUAL = "--pattern permutation"

FULL = [
    Case("ring all-reduce of 1 GB, fat tree 1024", f"--topology fat-tree --hosts 1024 {RING}", 20,
         drivers=("central", "ranks")),
    Case("Poisson, fat tree 1024", f"--topology fat-tree --hosts 1024 {POISSON}", 50, 5),
    Case("Poisson, torus 1024", f"--topology torus --hosts 1024 {POISSON}", 50, 5),
    Case("4 permutations, unequal, fat tree 1024", f"--topology fat-tree --hosts 1024 {PERMUTATIONS}", 50, 5),
    Case("4 permutations, unequal, torus 1024", f"--topology torus --hosts 1024 {PERMUTATIONS}", 50, 5),
    Case("all-to-all, unequal, fat tree 128", f"--topology fat-tree --hosts 128 {ALL_TO_ALL}", 100, 5, once=True),
    Case("permutation, torus 8192", f"--topology torus --hosts 8192 {EQUAL}", 100, once=True),
    Case("permutation, torus 65536", f"--topology torus --hosts 65536 {EQUAL}", seconds_asked=60, mib_asked=2048,
         once=True, simgrid=False, reference=False),
]
QUICK = [
    Case("ring all-reduce of 1 GB, fat tree 128", f"--topology fat-tree --hosts 128 {RING}",
         drivers=("central", "ranks")),
    Case("Poisson, fat tree 128", f"--topology fat-tree --hosts 128 {POISSON}"),
    Case("Poisson, torus 128", f"--topology torus --hosts 128 {POISSON}"),
    Case("4 permutations, unequal, fat tree 128", f"--topology fat-tree --hosts 128 {PERMUTATIONS}"),
    Case("4 permutations, unequal, torus 128", f"--topology torus --hosts 128 {PERMUTATIONS}"),
    Case("all-to-all, unequal, fat tree 16", f"--topology fat-tree --hosts 16 {ALL_TO_ALL}"),
    Case("permutation, torus 1024", f"--topology torus --hosts 1024 {EQUAL}"),
]
TIMERS = [1_000, 100_000, 1_000_000]
TIMERS_QUICK = [1_000, 100_000]


class Failure(Exception):
    """A program failed, or two of them do not agree."""


def run(program, arguments, limit=LIMIT):
    """What the program reports, or None when it ran out of time."""
    def prepare():
        # No RLIMIT_CPU: under it Linux reads the processor clock in whole ticks of some milliseconds.
        hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
        resource.setrlimit(resource.RLIMIT_STACK, (hard, hard))

    # SimGrid's solver calls itself once per link of a connected component.
    preparation = prepare if program.name.startswith("simgrid") else None
    command = [str(program), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, preexec_fn=preparation, check=False,
                              timeout=limit)
    except FileNotFoundError as error:
        raise Failure(f"{program} is not built") from error
    except subprocess.TimeoutExpired:
        return None
    if done.returncode != 0:
        raise Failure(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()[-500:]}")
    report = json.loads(done.stdout)
    if not report["run_cpu_s"] > 0:
        raise Failure(f"{' '.join(command)} measured {report['run_cpu_s']} s of processor time, which cannot be")
    return report if report.get("status", "ok") == "ok" else None


def difference(left, right):
    """Largest relative difference of finish times and of durations between two CSV files of the same flows."""
    worst = 0.0
    flows = 0
    with open(left, encoding="ascii") as first, open(right, encoding="ascii") as second:
        if next(first) != next(second):
            raise Failure(f"{left} and {right} have different columns")
        for a, b in zip(first, second):
            flow_a, start_a, finish_a = a.rsplit(",", 2)
            flow_b, start_b, finish_b = b.rsplit(",", 2)
            if flow_a != flow_b:
                raise Failure(f"not the same flows: {flow_a} and {flow_b}")
            finish = float(finish_b)
            duration = finish - float(start_b)
            later = float(finish_a) - finish
            longer = float(finish_a) - float(start_a) - duration
            worst = max(worst, abs(later) / finish, abs(longer) / duration)
            flows += 1
        if flows == 0 or next(first, None) or next(second, None):
            raise Failure(f"{left} and {right} have different numbers of flows")
    return worst


class Comparison:
    """Runs the programs in `folder` and keeps the times of flows in `scratch`."""

    def __init__(self, folder, scratch, runs):
        self.folder = folder
        self.runs = runs
        self.scratch = scratch
        self.has_simgrid = (folder / "simgrid_flows").exists()
        self.disagreements = []

    def flows(self, program, arguments, times=False, limit=LIMIT):
        more = ["--csv", self.csv(program)] if times else []
        return run(self.folder / f"{program}_flows", [*arguments, *more], limit)

    def csv(self, program):
        return str(self.scratch / f"{program}.csv")

    def agree(self, what, program, tolerance):
        """The difference between clustersim's last times and the program's; remembers it when it is too large."""
        worst = difference(self.csv("clustersim"), self.csv(program))
        if not worst <= tolerance:
            self.disagreements.append(f"{what}: clustersim and {program} differ by {worst:.2g}, more than {tolerance:g}")
        return worst

    def exact(self, what, arguments):
        """The difference to the reference on flows so long that a tick does not matter."""
        if "--bytes" not in arguments:
            arguments = [*arguments, *LONG]
        if not self.flows("clustersim", arguments, times=True) or not self.flows("reference", arguments, times=True):
            return None
        return self.agree(what, "reference", TOLERANCE)

    def measure(self, case):
        """Processor seconds by column, differences and sizes. clustersim runs again between any two of the others."""
        arguments = case.traffic.split()
        seconds = {}
        row = {"name": case.name}

        def take(column, report):
            if report:
                seconds.setdefault(column, []).append(report["run_cpu_s"])
                if column == "clustersim":
                    row.update(flows=report["flows"], peak_mib=report["peak_mib"])

        for number in range(1 if case.once else self.runs):
            first = number == 0
            take("clustersim", self.flows("clustersim", arguments, times=first))
            if case.reference:
                take("reference", self.flows("reference", arguments))
            for driver in case.drivers if case.simgrid and self.has_simgrid else ():
                limit = LIMIT
                for mode in ("Full", "Lazy"):
                    report = self.flows("simgrid", [*arguments, *simgrid(driver, mode, limit)], times=first)
                    take((mode, driver), report)
                    if report is None:
                        row[f"simgrid_{mode.lower()}_above_s"] = limit
                    elif first and "clustersim" in seconds:
                        worst = self.agree(case.name, "simgrid", TOLERANCE_SIMGRID)
                        row["difference_simgrid"] = max(worst, row.get("difference_simgrid", 0))
                    if report and case.once:
                        limit = report["run_cpu_s"]
                    if not case.once or seconds.get("clustersim", [LIMIT])[0] < 20:
                        take("clustersim", self.flows("clustersim", arguments))
        if case.reference and "clustersim" in seconds:
            row["difference_reference"] = self.exact(case.name, arguments)
        return conclude(case, row, {column: statistics.median(values) for column, values in seconds.items()})

    def timers(self, pending, events):
        """Nanoseconds of an event: the median of three, alternating."""
        times = {"clustersim_hold": [], "simgrid_timers": []}
        for _ in range(3):
            for program, values in times.items():
                values.append(run(self.folder / program, [str(pending), str(events)])["ns_per_event"])
        ours, simgrid_timers = (statistics.median(values) for values in times.values())
        return {"name": f"timers, {pending:,} pending", "pending": pending, "clustersim_ns": ours,
                "simgrid_ns": simgrid_timers, "ratio_simgrid": simgrid_timers / ours}


def simgrid(driver, mode, limit):
    return ["--driver", driver, "--limit", f"{limit:.3f}", "--log=root.thresh:error", f"--cfg=network/optim:{mode}",
            "--cfg=surf/precision:1e-12"]


def conclude(case, row, seconds):
    """Adds the columns and the ratios to the row."""
    ours = row["clustersim_cpu_s"] = seconds.get("clustersim")
    row["reference_cpu_s"] = seconds.get("reference")
    for mode in ("Lazy", "Full"):
        row[f"simgrid_{mode.lower()}_cpu_s"] = min((value for column, value in seconds.items() if column[0] == mode),
                                                   default=None)
    best = min((row[key] for key in ("simgrid_lazy_cpu_s", "simgrid_full_cpu_s") if row[key]), default=None)
    for peer, value, asked in (("simgrid", best, case.simgrid_asked),
                               ("reference", row["reference_cpu_s"], case.reference_asked)):
        row[f"ratio_{peer}"] = value / ours if value and ours else None
        row[f"ratio_{peer}_asked"] = asked or None
    row["missed"] = missed(case, row)
    return row


def missed(case, row):
    """What is asked for and not reached, in words."""
    found = []
    for peer in ("simgrid", "reference"):
        ratio, asked = row[f"ratio_{peer}"], row[f"ratio_{peer}_asked"]
        if asked and ratio and ratio < asked:
            found.append(f"{ratio:.1f} times faster than {peer}, {asked:g} are asked for")
    ours, mib = row["clustersim_cpu_s"], row.get("peak_mib", 0)
    if ours is None:
        found.append(f"not finished within {LIMIT} s")
    elif case.seconds_asked and ours > case.seconds_asked:
        found.append(f"{ours:.1f} s, at most {case.seconds_asked:g} are asked for")
    if case.mib_asked and mib > case.mib_asked:
        found.append(f"{mib:.0f} MiB, at most {case.mib_asked:g} are asked for")
    return found


# Group and title of each column of the table, and its width.
COLUMNS = [("", "flows", 10), ("processor seconds of", "clustersim", 14), ("", "Lazy", 9), ("", "Full", 9),
           ("", "reference", 11), ("times faster than", "SimGrid", 9), ("", "asked", 7), ("", "reference", 11),
           ("", "asked", 7), ("peak", "MiB", 7), ("difference from", "SimGrid", 9), ("", "reference", 11)]


def line(name, cells):
    return f"{name:<40}" + "".join(f"{cell:>{width}}" for cell, (_, _, width) in zip(cells, COLUMNS))


def header():
    groups = ""
    position = 40
    for group, title, width in COLUMNS:
        if group:
            groups = groups.ljust(position + width - len(title)) + group
        position += width
    return groups + "\n" + line("", [title for _, title, _ in COLUMNS])


def mode_text(row, mode):
    above = row.get(f"simgrid_{mode}_above_s")
    value = row[f"simgrid_{mode}_cpu_s"]
    return f">{above:.0f}" if value is None and above else text(value, ".3f")


def text(value, form):
    return "-" if value is None else format(value, form)


def table_row(row):
    return line(row["name"], [
        text(row.get("flows"), ","), text(row["clustersim_cpu_s"], ".4f"), mode_text(row, "lazy"), mode_text(row, "full"),
        text(row["reference_cpu_s"], ".4f"),
        text(row["ratio_simgrid"], ".1f"), text(row["ratio_simgrid_asked"], "g"),
        text(row["ratio_reference"], ".1f"), text(row["ratio_reference_asked"], "g"),
        text(row.get("peak_mib"), ".0f"), text(row.get("difference_simgrid"), ".1e"),
        text(row.get("difference_reference"), ".1e")])


def compare(comparison, cases, timers, history):
    """Prints the tables, appends a line of JSON per case to `history`, returns what was missed."""
    found = []
    stamp = {"commit": commit(), "machine": machine()}

    def keep(row):
        if history:
            with open(history, "a", encoding="utf-8") as file:
                file.write(json.dumps({**stamp, "bench": f"peers: {row.pop('name')}", **row}) + "\n")

    print(f"{stamp['machine']}; commit {stamp['commit']}; medians; SimGrid in its modes Lazy and Full, the better one "
          "counts; differences are relative, of the completion time that differs most", flush=True)
    if not comparison.has_simgrid:
        print("skipped: SimGrid, which was not found when the programs were built (Debian: libsimgrid-dev)")
    if cases:
        print(header(), flush=True)
    for case in cases:
        row = comparison.measure(case)
        print(table_row(row), flush=True)
        found += [f"{case.name}: {what}" for what in row["missed"]]
        keep(row)
    for pending, events in timers if comparison.has_simgrid else ():
        row = comparison.timers(pending, events)
        print(f"{row['name']:<40} clustersim {row['clustersim_ns']:.0f} ns an event, SimGrid {row['simgrid_ns']:.0f} "
              f"ns: {row['ratio_simgrid']:.1f} x", flush=True)
        keep(row)
    return found


def check(comparison):
    """Every pattern on every topology, small, against the reference."""
    patterns = ["permutation", "permutation --rounds 4 --jitter 0.5", "shift", "shift --jitter 0.5", "incast",
                "incast --jitter 0.5", "neighbours --jitter 0.9", "all-to-all", "poisson --rounds 10",
                "poisson --rounds 10 --load 0.9 --jitter 0.5", "ring-all-reduce --bytes 16000000000",
                "hierarchical --bytes 64000000000 --jitter 0.2"]
    worst = 0.0
    for topology in ("fat-tree", "torus"):
        for hosts in (16, 128):
            for pattern in patterns + (["all-to-all --jitter 0.5"] if hosts == 16 else []):
                what = f"--topology {topology} --hosts {hosts} --pattern {pattern}"
                found = comparison.exact(what, what.split())
                if found is None:
                    raise Failure(f"{what}: not finished within {LIMIT} s")
                worst = max(worst, found)
    # A check that could not fail would be none: links that are a little faster have to be noticed.
    arguments = [*LONG, "--jitter", "0.5"]
    comparison.flows("clustersim", arguments, times=True)
    comparison.flows("reference", [*arguments, "--bandwidth", "12500000100"], times=True)
    noticed = difference(comparison.csv("clustersim"), comparison.csv("reference"))
    if not 0.9 * 8e-9 < noticed < 1.1 * 8e-9:
        comparison.disagreements.append(f"links faster by 8e-9 appear as a difference of {noticed:.2g}")
    print(f"largest relative difference {worst:.2g}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--check", action="store_true", help="completion times only")
    parser.add_argument("--case", default=".", help="regular expression: only the cases it is found in")
    parser.add_argument("--runs", type=int, default=3, help="how often a case is run unless it is long")
    parser.add_argument("--history", help="file to append a line of JSON per case to")
    options = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory() as scratch:
        comparison = Comparison(options.folder.resolve(), pathlib.Path(scratch), options.runs)
        try:
            if options.check:
                check(comparison)
            else:
                cases = [case for case in (QUICK if options.quick else FULL) if re.search(options.case, case.name)]
                timers = [(pending, 200_000 if options.quick else 2_000_000)
                          for pending in (TIMERS_QUICK if options.quick else TIMERS)
                          if re.search(options.case, f"timers, {pending:,} pending")]
                found = compare(comparison, cases, timers, options.history)
        except Failure as failure:
            sys.exit(f"compare.py: {failure}")
        disagreements = comparison.disagreements
    for missing in found:
        print(f"missed: {missing}")
    for disagreement in disagreements:
        print(f"WRONG: {disagreement}")
    sys.exit(1 if disagreements else 0)


if __name__ == "__main__":
    main()
