"""Every Keras case on the backend that KERAS_BACKEND names; answers as JSON into a file.

KERAS_BACKEND=jax python -m tests.keras_layers.worker folder
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import ops

import smmd
import smmd.keras

N, D = 32, 3
KERNELS = {
    "gaussian": None,
    "adaptive": smmd.Adaptive(1 / 4),
    "scales": smmd.MultiScale((1 / 16, 1 / 4)),
    "imq": smmd.IMQ(),
    "sliced": smmd.Sliced(),
}


def codes(n: int = N, seed: int = 0) -> np.ndarray:
    return (1.3 * np.random.default_rng(seed).standard_normal((n, D)) + 0.3).astype(np.float32)


def images(n: int = 96) -> np.ndarray:
    return np.random.default_rng(1).random((n, 8, 8, 1)).astype(np.float32)


def floats(x: Any) -> Any:
    return np.asarray(ops.convert_to_numpy(x), dtype=np.float64).tolist()


def penalties() -> dict[str, Any]:
    found = {}
    for name, kernel in KERNELS.items():
        layer = smmd.keras.SMMDPenalty(0.5, kernel=kernel)
        z = ops.convert_to_tensor(codes())
        passed = layer(z)
        found[name] = {"loss": floats(layer.losses[0]), "same": floats(passed) == floats(z)}
    return found


def gradient_step(kernel: Any) -> Any:
    """What one step of plain gradient descent on the penalty alone does to a linear encoder."""
    x = keras.Input((D,))
    dense = keras.layers.Dense(D, use_bias=False, kernel_initializer="identity")
    model = keras.Model(x, smmd.keras.SMMDPenalty(1.0, kernel=kernel)(dense(x)))
    model.compile(optimizer=keras.optimizers.SGD(1.0), loss=lambda y, p: ops.mean(0.0 * p))
    model.fit(codes(), codes(), batch_size=N, epochs=1, verbose=0, shuffle=False)
    return floats(ops.eye(D) - dense.kernel)


def code_norm() -> dict[str, Any]:
    layer = smmd.keras.CodeNorm(momentum=0.9)
    first = floats(layer(codes(), training=True))
    layer(codes(seed=1), training=True)
    state = {"mean": floats(layer.moving_mean), "var": floats(layer.moving_variance)}
    half = smmd.keras.CodeNorm(dtype="mixed_float16")(codes(), training=True)
    return {
        "train": first,
        **state,
        "eval": floats(layer(codes(), training=False)),
        "weights": [w.path.split("/")[-1] for w in layer.weights],
        "trainable": len(layer.trainable_weights),
        "half": floats(half),
        "half dtype": keras.backend.standardize_dtype(half.dtype),
    }


def metric() -> dict[str, Any]:
    b = smmd.keras.SMMD()
    for seed in range(4):
        b.update_state(None, codes(seed=seed))
    again = smmd.keras.SMMD.from_config(b.get_config())
    again.update_state(codes())
    statistic = b.statistic(smmd.monitor.Batch(N, D))
    return {
        "result": floats(b.result()), "again": floats(again.result()),
        "count": statistic.count, "verdict": statistic.verdict(),
    }  # fmt: skip


def paper_model(d: int = D) -> tuple[Any, Any]:
    """The paper's listing, smaller, with its two lines swapped for ours."""
    layers = keras.layers
    img_in = keras.Input((8, 8, 1))
    temp = layers.Conv2D(4, (2, 2), strides=(2, 2), padding="same", activation="relu")(img_in)
    temp = layers.Flatten()(temp)
    temp = layers.Dense(d, activation="linear")(temp)
    code_out = smmd.keras.CodeNorm(momentum=0.5)(temp)
    encoder = keras.Model(inputs=[img_in], outputs=[code_out])

    code_in = keras.Input((d,))
    temp = layers.Dense(8 * 8, activation="sigmoid")(code_in)
    decoder = keras.Model(inputs=[code_in], outputs=[layers.Reshape((8, 8, 1))(temp)])

    x = keras.Input((8, 8, 1))
    z = smmd.keras.SMMDPenalty(0.01)(encoder(x))
    wae = keras.Model(inputs=[x], outputs=[decoder(z)])
    wae.compile(optimizer="adam", loss="mean_squared_error")
    return wae, encoder


def training(folder: Path) -> dict[str, Any]:
    keras.utils.set_random_seed(0)
    wae, encoder = paper_model()
    follow = smmd.keras.LatentMonitor(encoder, images(64), batch_size=32)
    # 96 rows in batches of 40: the last one is smaller.
    history = wae.fit(
        images(), images(), batch_size=40, epochs=2, verbose=0,
        validation_data=(images(64), images(64)), callbacks=[follow],
    )  # fmt: skip
    wae.save(folder / "wae.keras")
    loaded = keras.models.load_model(folder / "wae.keras")
    kinds = [type(v).__name__ for v in loaded._flatten_layers()]
    before, after = (floats(m.predict(images(8), verbose=0)) for m in (wae, loaded))
    evaluated = [float(m.evaluate(images(), images(), verbose=0)) for m in (wae, loaded)]
    goes_on = loaded.fit(images(), images(), batch_size=48, epochs=1, verbose=0).history
    assert follow.train is not None
    assert follow.validation is not None
    return {
        "history": {k: [float(v) for v in values] for k, values in history.history.items()},
        "kinds": kinds, "same": np.allclose(before, after, atol=1e-6), "evaluated": evaluated,
        "goes on": len(goes_on["loss"]), "train": follow.train.verdict(),
        "validation": follow.validation.verdict(),
        "codes": floats(encoder.predict(images(64), verbose=0)),
        "batches": follow.train.count,
    }  # fmt: skip


def named_output() -> Any:
    """The metric on an output that holds the codes."""
    x = keras.Input((D,))
    code = keras.layers.Identity(name="code")(x)
    y = keras.layers.Dense(D, name="y")(code)
    model = keras.Model(x, {"y": y, "code": code})
    model.compile(loss={"y": "mse", "code": None}, metrics={"code": smmd.keras.SMMD()})
    data = codes(64)
    found = model.evaluate(
        data, {"y": data, "code": data}, batch_size=32, verbose=0, return_dict=True
    )
    return {k: float(v) for k, v in found.items()}


def encoder_variances() -> Any:
    layer = smmd.keras.SMMDPenalty()
    layer(ops.convert_to_tensor(codes()), ops.full((N, D), 0.2))
    return floats(layer.losses[0])


def errors() -> dict[str, str]:
    tries = {
        "images": lambda: smmd.keras.CodeNorm()(images()),
        "one row": lambda: smmd.keras.CodeNorm()(codes(1), training=True),
        "kernel": lambda: smmd.keras.SMMDPenalty(kernel={"name": "Laplace"}),
        "half": lambda: smmd.keras.LatentMonitor(encoder=1),
    }
    said = {}
    for name, call in tries.items():
        try:
            call()
        except (ValueError, TypeError) as error:
            said[name] = str(error)
    return said


def main(folder: Path) -> None:
    backend = keras.backend.backend()
    answers: dict[str, Any] = {
        "penalties": penalties(), "code norm": code_norm(), "metric": metric(),
        "steps": {name: gradient_step(KERNELS[name]) for name in ("gaussian", "sliced")},
        "training": training(folder), "named": named_output(), "errors": errors(),
    }  # fmt: skip
    if backend != "tensorflow":
        answers["encoder"] = encoder_variances()
    (folder / f"{backend}.json").write_text(json.dumps(answers))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
