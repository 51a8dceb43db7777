"""The paper's Keras listing, smaller, on any backend, with two of its lines swapped for ours."""

import keras
import numpy as np

import smmd.keras

LATENT_DIM, BATCH = 4, 100


def main(epochs: int = 3, count: int = 2000) -> dict[str, list[float]]:
    keras.utils.set_random_seed(0)
    layers = keras.layers
    images = np.random.default_rng(0).random((count, 2)) * 6 + 4  # where a bright spot is
    grid = np.arange(14.0)
    spots = np.exp(-0.5 * (grid - images[..., None]) ** 2).astype("float32")
    images = spots[:, 0, :, None] * spots[:, 1, None, :]

    x = keras.Input((14, 14))
    temp = layers.Reshape((14, 14, 1))(x)
    temp = layers.Conv2D(8, 3, strides=2, padding="same", activation="relu")(temp)
    temp = layers.Flatten()(temp)
    temp = layers.Dense(LATENT_DIM)(temp)
    z = smmd.keras.CodeNorm(momentum=0.9)(temp)  # was BatchNormalization(center=False, scale=False)
    encoder = keras.Model(x, z)

    code = keras.Input((LATENT_DIM,))
    temp = layers.Dense(64, activation="relu")(code)
    decoder = keras.Model(code, layers.Reshape((14, 14))(layers.Dense(14 * 14)(temp)))

    z = smmd.keras.SMMDPenalty(0.01)(encoder(x))  # was wae.add_loss(0.01 * smmd(z))
    wae = keras.Model(x, decoder(z))
    wae.compile(optimizer=keras.optimizers.Adam(2e-3), loss="mean_squared_error")
    train, validation = np.split(images, [3 * count // 4])
    follow = smmd.keras.LatentMonitor(encoder, validation, batch_size=BATCH)
    history = wae.fit(
        train, train, batch_size=BATCH, epochs=epochs, verbose=0,
        validation_data=(validation, validation), callbacks=[follow],
    ).history  # fmt: skip
    print("loss:", *(f"{v:.3f}" for v in history["loss"]))
    print("B of the validation:", *(f"{v:.2f}" for v in history["val_smmd_b"]))
    print(follow.train.verdict(), follow.validation.verdict(), sep="\n")
    return history


if __name__ == "__main__":
    main()
