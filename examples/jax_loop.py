"""JAX: ``smmd.smmd`` is a plain function under jit and grad; memory stays linear in n."""

import jax
import jax.numpy as jnp

import smmd

D, N = 4, 128


def encode(weights, x):
    z = jnp.tanh(x @ weights["in"]) @ weights["out"]
    return (z - z.mean(0)) / z.std(0, ddof=1)  # code normalization


def loss(weights, x):
    z = encode(weights, x)
    rebuilt = jnp.tanh(z @ weights["back"]) @ weights["up"]
    return jnp.mean((rebuilt - x) ** 2) + 0.01 * smmd.smmd(z)


@jax.jit
def step(weights, x):
    value, slopes = jax.value_and_grad(loss)(weights, x)
    return jax.tree.map(lambda w, g: w - 0.05 * g, weights, slopes), value


def main(steps: int = 500) -> tuple[float, float]:
    key = jax.random.key(0)
    shapes = {"in": (16, 64), "out": (64, D), "back": (D, 64), "up": (64, 16)}
    keys = jax.random.split(key, len(shapes))
    weights = {
        name: jax.random.normal(k, shape) / shape[0] ** 0.5
        for k, (name, shape) in zip(keys, shapes.items(), strict=True)
    }
    turn = jax.random.normal(jax.random.key(1), (D, 16))

    def batch(seed):
        return jnp.tanh(
            jax.random.uniform(jax.random.key(seed), (N, D), minval=-2, maxval=2) @ turn
        )

    codes = jax.jit(encode)
    many = jax.vmap(smmd.smmd)  # a sample on each leading index
    before = many(jnp.stack([codes(weights, batch(10_000 + i)) for i in range(8)]))
    for i in range(steps):
        weights, value = step(weights, batch(i))
    after = many(jnp.stack([codes(weights, batch(10_000 + i)) for i in range(8)]))
    print(
        f"SMMD² of fresh batches: {before.mean():.1f} at first, {after.mean():.1f} after training"
    )
    print(f"loss {value:.3f}")
    return float(before.mean()), float(after.mean())


if __name__ == "__main__":
    main()
