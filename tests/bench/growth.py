#!/usr/bin/env python3
"""How cost grows: processor time and memory against GPUs (lumped, unlumped, hashed) and against flows.

usage: growth.py BUILD_FOLDER [--most-unlumped GPUS] [--most-lumped GPUS]; prints the tables of docs/performance.md.
The exponent of a table is the slope of a straight line through the logarithms (least squares).
"""
import argparse
import json
import math
import os
import re

from measure import measured


def exponent(sizes, costs):
    x = [math.log(size) for size in sizes]
    y = [math.log(max(cost, 1e-3)) for cost in costs]
    x_mean, y_mean = sum(x) / len(x), sum(y) / len(y)
    return sum((a - x_mean) * (b - y_mean) for a, b in zip(x, y)) / sum((a - x_mean) ** 2 for a in x)


def table(title, unit, rows):
    """rows: (size, CPU s, MiB, events, note)"""
    print(f"\n**{title}**\n")
    print(f"| {unit} | CPU s | peak MiB | events | |")
    print("|--:|--:|--:|--:|---|")
    for size, seconds, mebibytes, events, note in rows:
        print(f"| {size:,} | {seconds:.2f} | {mebibytes:,.0f} | {events:,} | {note} |")
    if len(rows) > 1:
        sizes = [row[0] for row in rows]
        print(f"\nExponent: CPU time {exponent(sizes, [row[1] for row in rows]):.2f}, "
              f"memory {exponent(sizes, [row[2] for row in rows]):.2f}.", flush=True)


def training(program, scenario, gpus, *options):
    """One step of Llama 3 405B, TP 8 x PP 16, weak scaling: 16 sequences per data-parallel rank."""
    data = gpus // 128
    output, _, seconds, mebibytes = measured(
        [program, "run", scenario, "--no-output", "--json", "--set", f"cluster.nodes={gpus // 8}", "--set",
         f"jobs[0].parallel.data={data}", "--set", f"jobs[0].global_batch={16 * data}", *options])
    result = json.loads(output)
    lumps = result.get("lumps", {})
    note = f"{lumps['rank_classes']:,} rank classes" if "rank_classes" in lumps else ""
    return gpus, seconds, mebibytes, result["events"], note


def flows(folder, topology, pattern, hosts, *options):
    output, _, seconds, mebibytes = measured([os.path.join(folder, "tests/bench/peers/clustersim_flows"), "--topology", topology,
                                           "--pattern", pattern, "--hosts", str(hosts), *options])
    count = int(re.search(r'"flows": *(\d+)', output).group(1))
    return count, seconds, mebibytes, 2 * count, f"{hosts:,} hosts"


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder")
    arguments.add_argument("--most-unlumped", type=int, default=16384)
    arguments.add_argument("--most-lumped", type=int, default=1048576)
    arguments = arguments.parse_args()
    program = os.path.join(arguments.folder, "clustersim")
    lumped = [n for n in (1024, 8192, 16384, 131072, 1048576) if n <= arguments.most_lumped]
    unlumped = [n for n in (1024, 2048, 4096, 8192, 16384) if n <= arguments.most_unlumped]

    table("Llama 3 405B step, spread routing, lumped", "GPUs", [training(program, "llama3-405b-131072", n) for n in lumped])
    table("the same, unlumped", "GPUs", [training(program, "llama3-405b-16k", n, "--lumping", "off") for n in unlumped])
    table("the same, hashed routing (4 queue pairs), unlumped", "GPUs",
          [training(program, "llama3-405b-16k-hashed", n, "--lumping", "off", "--set", "cluster.network.queue_pairs=4")
           for n in unlumped])
    table("permutation of unequal sizes on a 3-D torus", "flows",
          [flows(arguments.folder, "torus", "permutation", n, "--jitter", "0.5") for n in (1024, 8192, 65536)])
    table("all-to-all of unequal sizes on a fat tree", "flows",
          [flows(arguments.folder, "fat-tree", "all-to-all", n, "--jitter", "0.5") for n in (64, 128, 256)])


if __name__ == "__main__":
    main()
