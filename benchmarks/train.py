"""Milliseconds a training step takes, by how it is run; and whether all ways train alike.

    PYTHONPATH=src python -m benchmarks.train                  # needs a GPU
    PYTHONPATH=src python -m benchmarks.train --only tf32,bf16 --seeds 1,10

The paper's network and recipe on 60,000 images (the shipped digits, repeated).  Times are over
whole recordings between synchronizations, after warm-up; "epoch 60x" is what 60 epochs would take.
Losses after the same steps from the same weights must agree between the ways to rounding.
"""

from __future__ import annotations

import argparse
import json
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

import torch

from smmd.wae import data, graphs, loop, model
from smmd.wae.config import choose


@dataclass(frozen=True)
class Way:
    """How steps are run."""

    name: str
    precision: str
    graph: bool = True
    unroll: int = 20
    channels_last: bool = True
    fused: bool = True


WAYS = {
    way.name: way
    for way in (
        Way("eager-float32", "float32", graph=False, channels_last=False, fused=False),
        Way("plain-graph", "tf32", unroll=1, channels_last=False, fused=False),
        Way("unfused-tf32", "tf32", fused=False),
        Way("unfused-bf16", "bf16", fused=False),
        Way("float32", "float32"),
        Way("tf32", "tf32"),
        Way("bf16", "bf16"),
    )
}


def learners(way: Way, seeds: int, images: torch.Tensor, version: str) -> list[loop.Learner]:
    """As ``fit`` makes them."""
    made = []
    for seed in range(seeds):
        config = choose("paper", version=version, seed=seed)
        built = model.build(config, (1, 28, 28)).to("cuda")
        if way.channels_last:
            built = built.to(memory_format=torch.channels_last)
        built.narrow = torch.bfloat16 if way.precision == "bf16" else None
        made.append(loop.Learner(config, built, images, fused=way.fused))
    return made


def measure(way: Way, seeds: int, images: torch.Tensor, args: argparse.Namespace) -> dict:
    """Time ``args.steps`` steps; and the losses of the first ones."""
    begun = time.perf_counter()
    with graphs.arithmetic(way.precision):
        made = learners(way, seeds, images, args.version)
        for learner in made:
            learner.begin(1)
        if way.graph:
            recording = graphs.Recording(made, way.unroll)
        else:
            for learner in made:
                learner.step()
        torch.cuda.synchronize()
        ready = time.perf_counter() - begun
        for learner in made:
            learner.place.zero_()
        steps, start = 0, time.perf_counter()
        done = recording() if way.graph else loop.advance(made)
        for steps in done:
            if steps >= args.steps:
                break
        torch.cuda.synchronize()
        spent = time.perf_counter() - start
        last = [learner.measured[:steps].cpu() for learner in made]
        if args.profile and seeds == 1:
            profile(way, recording if way.graph else None, made)
    return {
        "way": way.name,
        "seeds": seeds,
        "ms_per_step": 1e3 * spent / steps,
        "epochs_60_s": spent / steps * 36000,
        "ready_s": ready,
        "mse_10": [float(m[:10, 0].mean()) for m in last],
        "smmd_10": [float(m[:10, 1].mean()) for m in last],
        "mse_end": [float(m[-20:, 0].mean()) for m in last],
        "smmd_end": [float(m[-20:, 1].mean()) for m in last],
        "memory_mib": torch.cuda.max_memory_allocated() / 2**20,
    }


def profile(way: Way, recording: graphs.Recording | None, made: list[loop.Learner]) -> None:
    """Where one recording's time goes."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as watch

    with watch(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as seen:
        made[0].place.zero_()
        if recording is None:
            made[0].step()
        else:
            recording.many.replay()
        torch.cuda.synchronize()
    on_gpu = torch.autograd.DeviceType.CUDA
    kernels = [e for e in seen.key_averages() if e.device_type == on_gpu]
    kernels.sort(key=lambda e: -e.self_device_time_total)
    count = way.unroll if recording is not None else 1
    total = sum(e.self_device_time_total for e in kernels) / count
    calls = sum(e.count for e in kernels) / count
    print(f"--- {way.name}: {calls:.0f} kernels a step, {total:.0f} µs in them")
    for e in kernels[:36]:
        print(f"{e.self_device_time_total / count:8.1f} µs {e.count / count:5.1f}x  {e.key[:110]}")


def main() -> None:
    """Print a table, and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(WAYS))
    parser.add_argument("--seeds", default="1,10")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--version", default="code-norm")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    digits = torch.from_numpy(data.load().train).cuda()
    images = digits.repeat(6, 1, 1, 1)
    print(torch.cuda.get_device_name(), torch.__version__, f"SMMD² penalty, {args.version}")
    rows = []
    for seeds in map(int, args.seeds.split(",")):
        for name in args.only.split(","):
            if seeds > 1 and (not WAYS[name].graph or WAYS[name].unroll == 1):
                continue
            torch.cuda.reset_peak_memory_stats()
            try:
                rows.append(measure(WAYS[name], seeds, images, args))
            except Exception:
                print(f"{name}, {seeds} seeds, failed:\n{traceback.format_exc()[:6000]}")
                continue
            show(rows[-1])
            if args.out:  # now: what follows may be cut short
                args.out.write_text(json.dumps(rows, indent=1) + "\n")
    print()
    for row in rows:
        show(row)


def show(row: dict) -> None:
    """One line."""
    print(
        f"{row['way']:<15} {row['seeds']:>2} seeds {row['ms_per_step']:8.3f} ms/step, "
        f"60 epochs {row['epochs_60_s']:7.1f} s, ready after {row['ready_s']:5.1f} s, "
        f"{row['memory_mib']:6.0f} MiB; first 10: mse {row['mse_10'][0]:.6f} "
        f"smmd {row['smmd_10'][0]:.5f}; last 20: {row['mse_end'][0]:.5f} {row['smmd_end'][0]:.4f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
