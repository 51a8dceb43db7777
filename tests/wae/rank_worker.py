"""What the processes of ``test_ranks`` do: train together, stop, and continue."""

from pathlib import Path

import torch
import torch.distributed as dist

from smmd.wae import fit

OPTIONS = {"batch": 48, "latent": 2, "threads": 1, "epochs": 2}
VERSIONS = ("code-norm", "adaptive-bn", "random")


def work(rank: int, world: int, data: str, folder: str) -> None:
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=world
    )
    # Adam divides by the root of squared gradients: the first steps turn a rounding error in the
    # gradient into a step of another sign.  In float64 that is rare enough to compare.
    torch.set_default_dtype(torch.float64)
    try:
        for version in VERSIONS:
            run = fit(data, out=Path(folder, version), version=version, **OPTIONS)
            torch.save(
                {"weights": run.model.state_dict(), "log": run.log},
                Path(folder, f"{version}-{rank}.pt"),
            )
        # From the first epoch again, which only the first rank reads.
        again = Path(folder, "code-norm")
        if rank == 0:
            (again / "checkpoints/epoch-0002.json").unlink()
        dist.barrier()
        run = fit(data, out=again, resume=True)
        torch.save(run.model.state_dict(), Path(folder, f"resumed-{rank}.pt"))
        try:
            fit(data, out=again, **OPTIONS)
        except ValueError as error:
            Path(folder, f"error-{rank}").write_text(str(error))
    finally:
        dist.destroy_process_group()
