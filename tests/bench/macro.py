#!/usr/bin/env python3
"""Whole runs of the library's largest scenarios on one core.

usage: macro.py BUILD_FOLDER HISTORY; appends one JSON line per run to HISTORY.
"""
import json
import os
import sys

from measure import commit, machine, measured


def main():
    folder, history = sys.argv[1:]
    print(f"{'scenario':<28} {'wall s':>10} {'CPU s':>10} {'peak MiB':>10} {'events':>12} {'step s':>10}")
    for scenario in ("llama3-405b-16k", "llama3-405b-131072", "scaling-8-to-16384"):
        output, wall, cpu, mebibytes = measured(
            [os.path.join(folder, "clustersim"), "run", scenario, "--json", "--no-output", "--threads", "1"])
        result = json.loads(output)
        points = result.get("points", [result])
        row = {"commit": commit(), "machine": machine(), "bench": scenario, "wall_s": round(wall, 3),
               "cpu_s": round(cpu, 3), "peak_rss_mib": round(mebibytes, 1),
               "events": sum(point["events"] for point in points), "step_time_s": points[-1]["step_time_s"]}
        print(f"{scenario:<28} {row['wall_s']:>10.3f} {row['cpu_s']:>10.3f} {row['peak_rss_mib']:>10.1f} "
              f"{row['events']:>12} {row['step_time_s']:>10.4f}", flush=True)
        with open(history, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
