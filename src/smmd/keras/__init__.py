"""smmd in Keras 3, on its torch, JAX and TensorFlow backends.

    z = smmd.keras.CodeNorm()(encoder(x))
    y = decoder(smmd.keras.SMMDPenalty(0.01)(z))

Codes are (n, d), the batch on the first axis; put ``keras.layers.Flatten`` before where they are
images.
"""

from smmd.errors import MissingExtra

try:
    import keras as _keras  # noqa: F401
except ImportError as error:  # pragma: no cover - the tests run where keras is
    if (error.name or "keras").startswith("keras"):
        raise MissingExtra("smmd.keras", "keras", "keras") from error
    raise ImportError(
        f"smmd.keras: Keras is installed, but {error.name!r} for its backend is not; set the "
        "environment variable KERAS_BACKEND to torch, jax or tensorflow, whichever you have"
    ) from error

from smmd.keras.layers import CodeNorm, SMMDPenalty
from smmd.keras.monitoring import SMMD, LatentMonitor

__all__ = ["SMMD", "CodeNorm", "LatentMonitor", "SMMDPenalty"]
