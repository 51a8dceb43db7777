"""The processes that train one model together, one alone being the common case; their device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

T = TypeVar("T")


@dataclass(frozen=True)
class Ranks:
    """This process among those of torch.distributed, if it was started."""

    rank: int = 0
    world: int = 1

    @classmethod
    def here(cls) -> Ranks:
        """As ``torchrun`` and ``init_process_group`` say."""
        if dist.is_available() and dist.is_initialized():
            return cls(dist.get_rank(), dist.get_world_size())
        return cls()

    def agree(self, value: T) -> T:
        """The first rank's value, on all."""
        if self.world == 1:
            return value
        box = [value]
        dist.broadcast_object_list(box, 0)
        return box[0]

    def decided(self, function: Callable[[], T]) -> T:
        """What the function gives, or raises, on the first rank, on all."""
        value: Any = None
        error: Exception | None = None
        if self.rank == 0:
            try:
                value = function()
            except Exception as raised:
                error = raised
        error, value = self.agree((error, value))
        if error is not None:
            raise error
        result: T = value
        return result

    def send(self, tensor: Tensor) -> None:
        """Overwrite the tensor by the first rank's."""
        if self.world > 1:
            dist.broadcast(tensor, 0)

    def mean(self, tensor: Tensor) -> Tensor:
        """The mean over ranks."""
        if self.world == 1:
            return tensor
        total = tensor.clone()
        dist.all_reduce(total)
        return total / self.world


def checked_device(device: Any, option: str) -> torch.device:
    """PyTorch's device of that name, if it is there; ``option`` is how the user named it."""
    try:
        found = torch.device(device)
        torch.empty(0, device=found)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"{option}{device!r} cannot be used: {reason}") from None
    return found
