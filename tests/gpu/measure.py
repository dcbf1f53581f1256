"""Times of operators and of training on a GPU, in microseconds, as JSON: python measure.py rushlight|torch [--quick].

With --train, instead: that training on the GPU gives the CPU's loss curve.
"""

import importlib
import json
import sys
import time
from pathlib import Path

import numpy as np

torch = importlib.import_module(sys.argv[1])
nn, F = torch.nn, torch.nn.functional
QUICK = "--quick" in sys.argv


def digits():
    rows = np.load(Path(__file__).resolve().parents[2] / "data" / "digits.npy")
    return torch.from_numpy(rows[:, :64].astype("float32")).view(-1, 1, 8, 8) / 16, torch.from_numpy(rows[:, 64]).long()


def train(device, steps, batch=32):
    """The losses of a small CNN, and the seconds of its last steps."""
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 10),
    ).to(device)  # fmt: skip
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    images, labels = (x.to(device) for x in digits())
    losses, warm = [], steps // 3
    for step in range(steps):
        if step == warm:
            losses = [x.item() for x in losses]
            start = time.perf_counter()
        rows = slice(step * batch % 1600, step * batch % 1600 + batch)
        loss = F.cross_entropy(net(images[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    losses[warm:] = [x.item() for x in losses[warm:]]
    return losses, (time.perf_counter() - start) / (steps - warm)


def microseconds(f, repeat):
    for _ in range(3):
        f()
    best = float("inf")
    for _ in range(3):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(repeat):
            f()
        torch.cuda.synchronize()
        best = min(best, (time.perf_counter() - start) / repeat)
    return best * 1e6


def times():
    n, repeat = (256, 5) if QUICK else (4096, 50)

    def on_gpu(*sizes, dtype=torch.float32):
        return torch.randn(*sizes, device="cuda").to(dtype)

    small, large, square = on_gpu(10), on_gpu(n, n), on_gpu(n // 2, n // 2)
    half = on_gpu(n // 2, n // 2, dtype=torch.float16)
    images, weight = on_gpu(n // 128, 64, 32, 32), on_gpu(64, 64, 3, 3)
    index = torch.randint(0, n, (n,), device="cuda")
    result = {
        "add, 10 elements": microseconds(lambda: small + small, 20 * repeat),
        f"add, {n} x {n}": microseconds(lambda: large + large, repeat),
        f"gelu, {n} x {n}": microseconds(lambda: F.gelu(large), repeat),
        f"sum of rows, {n} x {n}": microseconds(lambda: large.sum(1), repeat),
        f"softmax, {n} x {n}": microseconds(lambda: large.softmax(1), repeat),
        f"layer norm, {n} x {n}": microseconds(lambda: F.layer_norm(large, (n,)), repeat),
        f"index select, {n} x {n}": microseconds(lambda: large.index_select(0, index), repeat),
        f"sort, {n} x {n}": microseconds(lambda: large.sort(1), max(repeat // 10, 1)),
        f"matrix product, {n // 2}": microseconds(lambda: square @ square, repeat),
        f"matrix product, {n // 2}, float16": microseconds(lambda: half @ half, repeat),
        f"convolution 3 x 3, {tuple(images.shape)}": microseconds(lambda: F.conv2d(images, weight, padding=1), repeat),
        f"Fourier transform, {n} x {n}": microseconds(lambda: torch.fft.fft(large), repeat),
    }
    result["step of a digits CNN, batch of 32"] = train("cuda", 30 if QUICK else 300)[1] * 1e6
    return result


def main():
    if "--train" in sys.argv:
        (ours, _), (expected, _) = train("cuda", 60), train("cpu", 60)
        worst = max(abs(a - b) for a, b in zip(ours, expected))
        print(f"loss from {ours[0]:.4f} to {ours[-1]:.4f}; at most {worst:.4f} from the CPU's")
        sys.exit(not (worst < 0.02 and ours[-1] < 0.5 * ours[0]))
    print(json.dumps(times()))


if __name__ == "__main__":
    main()
