"""Train in child processes and kill them: killer.py DATA FOLDER KILLS, for test_keep.py.

Each child continues the run, until it is killed.  PyTorch is imported once, before the processes
part.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from smmd.wae import checkpoint, fit, records

OPTIONS = {"batch": 50, "latent": 2, "threads": 1}


def child(data: str, folder: str) -> None:
    try:
        fit(data, out=folder, resume=True, epochs=30, **OPTIONS)
    finally:
        os._exit(0)


def newest(run: Path) -> int:
    return max(checkpoint.epochs(run), default=0)


def main(data: str, folder: str, kills: int) -> None:
    rng, seen, run = random.Random(0), [], Path(folder)
    fit(data, epochs=1, **OPTIONS)  # what is computed once a process is computed now
    for number in range(kills):
        before = newest(run)
        pid = os.fork()
        if pid == 0:
            child(data, folder)
        if number % 2:  # after an epoch; else in the first moments, while files are made
            end = time.monotonic() + 60
            while time.monotonic() < end and newest(run) == before:
                time.sleep(0.001)
        time.sleep(rng.uniform(0.0, 0.1))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        state = checkpoint.newest(run)
        logged = len(records.read_log(run))
        epoch = 0 if state is None else state.epoch
        seen.append({"before": before, "checkpoint": epoch, "logged": logged})
    print(json.dumps(seen))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
