"""How much of the machine's memory bandwidth the operators that mostly move memory reach, and how they compare with PyTorch.

    python tools/streaming.py [--peer PYTHON_WITH_TORCH] [--only REGEX] [--seconds S]

A share is the time that a sum and a copy of the same size would need for the bytes that an operator must read and write once, over
its time. Two processes, one for each library, take turns case by case.
"""

import argparse
import importlib
import itertools
import re
import subprocess
import sys
import time

# What is timed, and how many bytes it reads and writes for each of the 1e7 elements. "grad: y" times the gradient of y alone, at the
# leaf x or w. Names are those of `Inputs`.
CASES = {
    "add": ("a + b", 8, 4),
    "add in place": ("flat.add_(b)", 8, 4),
    "add a number": ("a + 1", 4, 4),
    "add a row": ("m + row", 4, 4),
    "add a column": ("m + column", 4, 4),
    "add a plane in the middle": ("cube + middle", 4, 4),
    "mul float32 by bfloat16": ("a * half", 6, 4),
    "add float64 to float32": ("a + double", 12, 8),
    "add int64 to float32": ("a + i", 12, 4),
    "mul bfloat16": ("half * half2", 4, 2),
    "add int64": ("i + i", 8, 8),
    "addcmul": ("M.addcmul(a, b, c)", 12, 4),
    "lerp": ("M.lerp(a, b, 0.3)", 8, 4),
    "where": ("M.where(mask, a, b)", 9, 4),
    "masked_fill": ("a.masked_fill(mask, 0)", 5, 4),
    "clamp": ("b.clamp(0.2, 0.7)", 4, 4),
    "relu": ("M.relu(a)", 4, 4),
    "gt": ("a > b", 8, 1),
    "eq a number": ("i == 3", 8, 1),
    "logical_and": ("mask & mask2", 2, 1),
    "isnan": ("a.isnan()", 4, 1),
    "neg bfloat16": ("-half", 2, 2),
    "sqrt": ("a.sqrt()", 4, 4),
    "abs strided": ("m[:, ::2].abs()", 4, 2),
    "relu backward": ("grad: M.relu(x)", 8, 4),
    "mul backward": ("grad: x * m", 8, 4),
    "sum": ("a.sum()", 4, 0),
    "sum rows": ("m.sum(1)", 4, 0),
    "sum columns": ("m.sum(0)", 4, 0),
    "sum middle": ("cube.sum(1)", 4, 0),
    "sum short rows": ("thin.sum(1)", 3.75, 0.25),
    "sum bfloat16": ("half.sum()", 2, 0),
    "sum float64": ("double.sum()", 8, 0),
    "sum int64": ("i.sum()", 8, 0),
    "sum bool": ("mask.sum()", 1, 0),
    "mean rows": ("m.mean(1)", 4, 0),
    "max": ("a.max()", 4, 0),
    "max rows": ("m.max(1)", 4, 0),
    "max columns": ("m.max(0)", 4, 0),
    "amax columns": ("m.amax(0)", 4, 0),
    "argmax": ("a.argmax()", 4, 0),
    "argmax rows": ("m.argmax(1)", 4, 0),
    "argmax columns": ("m.argmax(0)", 4, 0),
    "any": ("mask0.any()", 1, 0),
    "prod rows": ("m.prod(1)", 4, 0),
    "var": ("a.var()", 4, 0),
    "var rows": ("m.var(1)", 4, 0),
    "var columns": ("m.var(0)", 4, 0),
    "norm": ("M.linalg.vector_norm(a)", 4, 0),
    "norm columns": ("M.linalg.vector_norm(m, dim=0)", 4, 0),
    "count_nonzero": ("a.count_nonzero()", 4, 0),
    "dot": ("M.dot(a, b)", 8, 0),
    "softmax": ("F.softmax(m, 1)", 4, 4),
    "softmax columns": ("F.softmax(m, 0)", 8, 4),
    "softmax short rows": ("F.softmax(thin, 1)", 4, 4),
    "log_softmax": ("F.log_softmax(m, 1)", 4, 4),
    "logsumexp": ("m.logsumexp(1)", 4, 0),
    "softmax backward": ("grad: F.softmax(x, 1)", 8, 4),
    "log_softmax backward": ("grad: F.log_softmax(x, 1)", 8, 4),
    "layer_norm": ("F.layer_norm(m, (4000,), row, row)", 4, 4),
    "layer_norm backward": ("grad: F.layer_norm(x, (4000,), row, row)", 8, 4),
    "rms_norm": ("F.rms_norm(m, (4000,), row)", 4, 4),
    "rms_norm backward": ("grad: F.rms_norm(x, (4000,), row)", 8, 4),
    "group_norm": ("F.group_norm(images, 8)", 4, 4),
    "group_norm backward": ("grad: F.group_norm(x.view(50, 64, 25, 125), 8)", 8, 4),
    "batch_norm": ("F.batch_norm(images, None, None, training=True)", 4, 4),
    "batch_norm backward": ("grad: F.batch_norm(x.view(50, 64, 25, 125), None, None, training=True)", 8, 4),
    "mse_loss": ("F.mse_loss(a, b)", 8, 0),
    "mse_loss backward": ("grad: F.mse_loss(x, m2)", 8, 4),
    "l1_loss": ("F.l1_loss(a, b)", 8, 0),
    "smooth_l1_loss": ("F.smooth_l1_loss(a, b)", 8, 0),
    "bce": ("F.binary_cross_entropy(a, b)", 8, 0),
    "bce with logits": ("F.binary_cross_entropy_with_logits(a, b)", 8, 0),
    "bce with logits backward": ("grad: F.binary_cross_entropy_with_logits(x, m2)", 8, 4),
    "kl_div": ("F.kl_div(a, b, reduction='sum')", 8, 0),
    "cross_entropy": ("F.cross_entropy(m, classes)", 4, 0),
    "cross_entropy backward": ("grad: F.cross_entropy(x, classes)", 4, 4),
    "nll_loss backward": ("grad: F.nll_loss(x, classes)", 0, 4),
    "embedding": ("F.embedding(tokens, table)", 4, 4),
    "embedding backward": ("grad: F.embedding(tokens, w)", 4, 0.8),
    "gather rows": ("m.gather(1, columns)", 12, 4),
    "gather columns": ("m.gather(0, rows)", 12, 4),
    "scatter": ("m.scatter(1, columns, m2)", 16, 4),
    "scatter_add rows": ("out.scatter_add_(1, columns, m2)", 16, 4),
    "scatter_add columns": ("out.scatter_add_(0, rows, m2)", 16, 4),
    "index_select rows": ("m.index_select(0, few)", 4, 4),
    "index_select columns": ("m.index_select(1, few_columns)", 4, 4),
    "index rows": ("m[few]", 4, 4),
    "index_add": ("out.index_add_(0, few, m2)", 8, 4),
    "masked_select": ("a.masked_select(mask)", 5, 2),
    "nonzero": ("mask.nonzero()", 1, 4),
    "take": ("a.take(order)", 12, 4),
    "cumsum": ("a.cumsum(0)", 4, 4),
    "cumsum rows": ("m.cumsum(1)", 4, 4),
    "cumsum columns": ("m.cumsum(0)", 4, 4),
    "cumprod rows": ("m.cumprod(1)", 4, 4),
    "cumsum int64": ("i.cumsum(0)", 8, 8),
    "rand": ("out.uniform_()", 0, 4),
    "randn": ("out.normal_()", 0, 4),
    "randint": ("i2.random_(0, 100)", 0, 8),
    "bernoulli": ("out.bernoulli_(0.3)", 0, 4),
    "dropout": ("F.dropout(a, 0.3)", 4, 4),
    "zeros": ("M.zeros(10_000_000)", 0, 4),
    "fill": ("out.fill_(3)", 0, 4),
    "arange": ("M.arange(10_000_000)", 0, 8),
    "clone": ("a.clone()", 4, 4),
    "copy": ("flat.copy_(a)", 4, 4),
    "clone bfloat16": ("half.clone()", 2, 2),
    "cast to bfloat16": ("a.bfloat16()", 4, 2),
    "cast from bfloat16": ("half.float()", 2, 4),
    "cast to float16": ("a.half()", 4, 2),
    "cast to float64": ("a.double()", 4, 8),
    "cast to int64": ("a.long()", 4, 8),
    "cast from int64": ("i.float()", 8, 4),
    "cast from bool": ("mask.float()", 1, 4),
    "transpose": ("m.t().contiguous()", 4, 4),
    "transpose bfloat16": ("half.view(2500, 4000).t().contiguous()", 2, 2),
    "transpose and cast": ("m.t().double().contiguous()", 12, 16),
    "permute heads": ("heads.transpose(1, 2).contiguous()", 4, 4),
    "permute to channels last": ("images.contiguous(memory_format=M.channels_last)", 4, 4),
    "permute all": ("cube.permute(2, 1, 0).contiguous()", 4, 4),
    "cat": ("M.cat([m, m2], 0)", 8, 8),
    "cat columns": ("M.cat([m, m2], 1)", 8, 8),
    "stack": ("M.stack([a, b])", 8, 8),
    "stack last": ("M.stack([a, b], -1)", 8, 8),
    "flip": ("a.flip(0)", 4, 4),
    "flip rows": ("m.flip(0)", 4, 4),
    "flip columns": ("m.flip(1)", 4, 4),
    "roll": ("a.roll(1)", 4, 4),
    "roll rows": ("m.roll(1, 0)", 4, 4),
    "roll columns": ("m.roll(1, 1)", 4, 4),
    "pad": ("F.pad(images, (1, 1, 1, 1))", 4, 4),
    "pad reflect": ("F.pad(images, (1, 1, 1, 1), mode='reflect')", 4, 4),
    "slice": ("m[:, 1:].clone()", 4, 4),
    "expand": ("row.expand(2500, 4000).contiguous()", 0, 4),
    "repeat": ("row.repeat(2500, 1)", 0, 4),
    "repeat_interleave": ("few_rows.repeat_interleave(10, 0)", 0.4, 4),
    "tril": ("square.tril()", 2, 4),
    "one_hot": ("F.one_hot(labels, 100)", 0, 8),
    "unfold": ("F.unfold(small_images, 3, padding=1)", 0.4, 4),
}


class Inputs(dict):
    """The names that cases use, each made when it is first asked for."""

    def __init__(self, module):
        M = importlib.import_module(module)
        M.set_num_threads(2)
        M.manual_seed(0)
        super().__init__(M=M, F=M.nn.functional)
        n = 10_000_000
        self.makers = {
            **dict.fromkeys("abc", lambda: M.rand(n) * 0.9 + 0.05),
            **dict.fromkeys(("m", "m2"), lambda: M.rand(2500, 4000)),
            **dict.fromkeys(("half", "half2"), lambda: M.rand(n).bfloat16()),
            **dict.fromkeys(("mask", "mask2"), lambda: M.rand(n) < 0.5),
            "mask0": lambda: M.zeros(n, dtype=M.bool),
            "flat": lambda: M.zeros(n),
            "out": lambda: M.zeros(2500, 4000),
            "double": lambda: M.rand(n).double(),
            "i": lambda: M.randint(0, 100, (n,)),
            "i2": lambda: M.zeros(n, dtype=M.int64),
            "row": lambda: M.rand(4000),
            "column": lambda: M.rand(2500, 1),
            "cube": lambda: M.rand(100, 1000, 100),
            "middle": lambda: M.rand(100, 1, 100),
            "thin": lambda: M.rand(n // 16, 16),
            "images": lambda: M.rand(50, 64, 25, 125),
            "small_images": lambda: M.rand(10, 32, 58, 60),
            "heads": lambda: M.rand(20, 500, 10, 100),
            "square": lambda: M.rand(3162, 3162),
            "classes": lambda: M.randint(0, 4000, (2500,)),
            "labels": lambda: M.randint(0, 100, (n // 100,)),
            "tokens": lambda: M.randint(0, 20000, (n // 100,)),
            "table": lambda: M.rand(20000, 100),
            "w": lambda: M.rand(20000, 100).requires_grad_(),
            "x": lambda: M.rand(2500, 4000).requires_grad_(),
            "columns": lambda: M.randint(0, 4000, (2500, 4000)),
            "rows": lambda: M.randint(0, 2500, (2500, 4000)),
            "few": lambda: M.randperm(2500),
            "few_columns": lambda: M.randperm(4000),
            "few_rows": lambda: M.rand(2500, 400),
            "order": lambda: M.randperm(n),
        }

    def __missing__(self, name):
        if name not in self.makers:
            raise KeyError(name)
        self[name] = self.makers[name]()
        return self[name]

    def prepare(self, text):
        """What is to be called for a case."""
        M = self["M"]
        if not text.startswith("grad: "):
            return eval(f"lambda: {text}", self)
        leaf = self["w" if "(tokens, w)" in text else "x"]
        y = eval(text[6:], self)
        g = M.ones_like(y) if y.dim() == 0 else M.rand(*y.shape)
        return lambda: M.autograd.grad(y, leaf, g, retain_graph=True)


def work(module, seconds):
    """Reads expressions and answers each with the seconds of its fastest call, a library's names being made on the way."""
    inputs = Inputs(module)
    for line in sys.stdin:
        try:
            call, best = inputs.prepare(line.strip()), 1e9
            call()  # makes its inputs
            end = time.perf_counter() + seconds
            for calls in itertools.count():
                if calls > 2 and time.perf_counter() > end:
                    break
                start = time.perf_counter()
                call()
                best = min(best, time.perf_counter() - start)
            print(best, flush=True)
        except Exception as error:
            print(f"{type(error).__name__}: {error}".replace("\n", " "), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", help="a Python that has torch")
    parser.add_argument("--only", default="", help="a pattern of the cases' names")
    parser.add_argument("--seconds", type=float, default=0.15, help="for each case and library")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work:
        return work(args.work, args.seconds)

    def start(python, module):
        command = [python, __file__, "--work", module, "--seconds", str(args.seconds)]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(worker, text):
        print(text, file=worker.stdin, flush=True)
        answer = worker.stdout.readline().strip()
        try:
            return float(answer)
        except ValueError:
            print(f"{text}: {answer}", file=sys.stderr)
            return float("nan")

    ours = start(sys.executable, "rushlight")
    theirs = start(args.peer, "torch") if args.peer else None
    if theirs:
        ask(theirs, "a.sum()")  # has it imported before anything is timed
    read = ask(ours, "a.sum()") / 4
    write = ask(ours, "flat.copy_(a)") / 4 - read
    print(f"a sum reads {1e-2 / read:.0f} GB/s, a copy moves {2e-2 / (read + write):.0f} GB/s\n")
    print("| operator | ms | share | of PyTorch's speed |\n|---|---:|---:|---:|")
    for name, (text, reads, writes) in CASES.items():
        if re.search(args.only, name):
            seconds = ask(ours, text)
            ratio = f"{ask(theirs, text) / seconds:.2f}" if theirs else ""
            share = (reads * read + writes * write) / seconds
            print(f"| {name} | {seconds * 1e3:.2f} | {share:.0%} | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
