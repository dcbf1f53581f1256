"""Trains a small CNN on handwritten digits, then compares with the same program in C++ (digits.cpp).

Both see the same data in the same order from the same first weights. The C++ program's weights are loaded here and evaluated;
loss curves and the digits that were read wrong go into a picture.

    python examples/digits.py [--cpp build/release/bin/digits] [--out out]
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

import matplotlib
import numpy as np

import rushlight as torch
from rushlight import nn
from rushlight.utils.data import DataLoader, TensorDataset

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402 (the backend comes first)

ROOT = Path(__file__).resolve().parent.parent
EPOCHS, BATCH = 12, 32


class DigitNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(32)
        self.conv2 = nn.Conv2d(32, 64, 3, padding=1)
        self.norm2 = nn.BatchNorm2d(64)
        self.fc1 = nn.Linear(64 * 2 * 2, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = nn.functional.max_pool2d(self.norm1(self.conv1(x)).relu(), 2)
        x = nn.functional.max_pool2d(self.norm2(self.conv2(x)).relu(), 2)
        return self.fc2(self.fc1(x.flatten(1)).relu())


def load_digits():
    """The digits to train on and those held out, a fifth, as (image, label): images (1, 8, 8) with values from 0 to 1."""
    rows = torch.from_numpy(np.load(ROOT / "data" / "digits.npy"))
    rows = rows[torch.randperm(len(rows))]
    images = rows[:, :64].float().view(-1, 1, 8, 8) / 16
    labels = rows[:, 64].long()
    held_out = len(rows) // 5
    return TensorDataset(images[held_out:], labels[held_out:]), TensorDataset(images[:held_out], labels[:held_out])


def progress(epoch, done, total, loss):
    """Redraws the epoch's bar on a terminal; elsewhere, prints it once when it is full."""
    if sys.stdout.isatty() or done == total:
        bar = "█" * (24 * done // total)
        end = "\n" if done == total else "\r"
        print(f"epoch {epoch + 1:2}/{EPOCHS} |{bar:24}| loss {loss:.4f}", end=end, flush=True)


def train(model, digits):
    """Returns the loss of every step."""
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.3)
    loader = DataLoader(digits, batch_size=BATCH, shuffle=True)
    losses = []
    for epoch in range(EPOCHS):
        model.train()
        for step, (images, labels) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            progress(epoch, step + 1, len(loader), sum(losses[-step - 1 :]) / (step + 1))
        schedule.step()
    return losses


def predict(model, images):
    model.eval()
    with torch.no_grad():
        return model(images).argmax(1)


def accuracy(predictions, labels):
    return 100 * (predictions == labels).float().mean().item()


def run_cpp(program, out):
    """Trains in C++; returns the loss of every step and the seconds that took."""
    subprocess.run([program, str(ROOT / "data" / "digits.npy"), str(out)], check=True)
    losses = [float(line) for line in (out / "digits_cpp.csv").read_text().split()]
    return losses[:-1], losses[-1]


def draw(path, curves, images, labels, predictions):
    """The loss curves above; below them the digits that were read wrong."""
    wrong = (predictions != labels).nonzero().flatten().tolist()
    figure = plt.figure(figsize=(9, 6), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=[2, 1])
    axes = above.subplots()
    for (name, losses), style in zip(curves.items(), [{"lw": 4, "alpha": 0.4}, {"lw": 1, "color": "black"}]):
        axes.semilogy(losses, label=name, **style)
    axes.set(xlabel="step", ylabel="loss", title="training loss")
    axes.legend()
    below.suptitle(f"{len(wrong)} of {len(labels)} held-out digits read wrong" if wrong else "no digit read wrong")
    for axes, i in zip(np.ravel(below.subplots(1, 8)), wrong):
        axes.imshow(images[i, 0].numpy(), cmap="gray_r")
        axes.set_title(f"{labels[i].item()} as {predictions[i].item()}")
    for axes in below.axes:
        axes.set_axis_off()
    figure.savefig(path, dpi=120)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--cpp", help="the program built from digits.cpp; left out: Python only")
    arguments.add_argument("--out", type=Path, default=ROOT / "out")
    options = arguments.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    torch.manual_seed(0)
    digits, held_out = load_digits()
    test_images, test_labels = held_out.tensors
    print(f"{len(digits)} digits to train on, {len(held_out)} held out")

    print("\nPython")
    model = DigitNet()
    start = time.perf_counter()
    curves = {"Python": train(model, digits)}
    seconds = time.perf_counter() - start
    predictions = predict(model, test_images)
    weights = options.out / "digits_python.pt"
    torch.save(model.state_dict(), weights)
    written = [weights]
    table = [("Python", curves["Python"][-1], accuracy(predictions, test_labels), seconds)]

    if options.cpp:
        print("\nC++", flush=True)
        curves["C++"], seconds = run_cpp(options.cpp, options.out)
        weights = options.out / "digits_cpp.pt"
        model.load_state_dict(torch.load(weights))
        written += [weights, options.out / "digits_cpp.csv"]
        table.append(("C++", curves["C++"][-1], accuracy(predict(model, test_images), test_labels), seconds))

    picture = options.out / "digits.png"
    draw(picture, curves, test_images, test_labels, predictions)
    written.append(picture)

    print("\ntrained in   last loss   held-out accuracy   training time")
    for name, loss, percent, seconds in table:
        print(f"{name:10} {loss:11.5f} {percent:17.2f} % {seconds:13.1f} s")
    print("\nwritten: " + ", ".join(str(path) for path in written))
    return 0 if all(percent >= 98 for _, _, percent, _ in table) else 1


if __name__ == "__main__":
    sys.exit(main())
