"""The fast form of an actuator net: thousands of joints at once between physics steps.

Columns are (joint, simulation), group by group, padded to whole blocks. History is a ring: a step writes one row per
signal, contiguous, and the first layer's columns are turned instead of the data. Ones and contexts are rows too, so
biases cost no pass of their own. Everything is done block by block, which stays in the cache and can be shared among
threads; every product has the same shape, so that a column's result depends neither on its neighbours nor on how many
there are. Some kernels of BLAS sum the outer columns of a product in another order than those between: there, products
are made narrower until all columns of one are computed alike (`product_width`).
ELU is computed as elu(x) + 1 = exp(min(x, 0)) + max(x, 0); the one is taken back in the next layer's bias.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import NamedTuple

import numpy as np

from trueup.core.arrays import FloatArray, Ids
from trueup.models.actuator_net import ActuatorNet, Float32

BLOCK = 128  # columns: a hidden layer's block fits the second-level cache
_WIDTHS = (BLOCK, 16, 8, 1)  # columns of a product; narrower ones take up to a quarter longer


class _Group(NamedTuple):
    """Columns [start, start + used) of joints `joints`; `turned` holds the first layer's taps twice, newest last."""

    joints: list[int]
    start: int
    used: int
    blocks: int
    turned: Float32
    first: Float32
    rest: tuple[Float32, ...]


class _Chunk(NamedTuple):
    """Consecutive blocks of a group, from column `start` on."""

    group: int
    start: int
    blocks: int


class NetForward:
    """Runs a net for `nsim` simulations; `push` a step's signals, then `torque`."""

    def __init__(self, net: ActuatorNet, nsim: int, threads: int = 1) -> None:
        self.net, self.nsim, self.threads = net, nsim, max(1, threads)
        spec = net.spec
        self._nsignal, self._depth = len(spec.signals), spec.depth
        self._groups: list[_Group] = []
        start = 0
        for k, joints in enumerate(spec.groups):
            used = len(joints) * nsim
            blocks = -(-used // BLOCK)
            self._groups.append(_Group(list(joints), start, used, blocks, *_prepare(net, k)))
            start += blocks * BLOCK
        rows = self._depth * self._nsignal
        self.ring: Float32 = np.zeros((rows + net.context.shape[1] + 1, start), np.float32)
        self.newest = np.zeros(1, np.int64)  # slot of the ring written last
        self._out: Float32 = np.zeros(start, np.float32)
        self._fill_constants(rows)
        sizes = (*net.hidden, 1)
        self._width = product_width(tuple(w.shape for g in self._groups[:1] for w in (g.first, *g.rest)))
        self._scratch = [_Scratch(sizes, self._width) for _ in range(self.threads)]
        self._shares = self._share_out()
        self._pool = ThreadPoolExecutor(len(self._shares) - 1) if len(self._shares) > 1 else None
        _one_thread_a_product()

    def _fill_constants(self, rows: int) -> None:
        """Contexts and the ones of the bias, below the history."""
        for group in self._groups:
            seen = self.ring[rows:-1, group.start : group.start + group.used]
            seen[:] = np.repeat(self.net.context[group.joints].T, self.nsim, axis=1)
        self.ring[-1] = 1.0

    def load(self, net: ActuatorNet) -> None:
        """Take the numbers of another net of the same spec and shape; history stays."""
        self.net = net
        self._groups = [
            _Group(group.joints, group.start, group.used, group.blocks, *_prepare(net, k))
            for k, group in enumerate(self._groups)
        ]
        self._fill_constants(self._depth * self._nsignal)

    def read(self, age: int) -> Float32:
        """Signals (nsignal, nsim, njoint) that are `age` steps old, a copy."""
        slot = (int(self.newest[0]) - age) % self._depth
        rows = self.ring[slot * self._nsignal : (slot + 1) * self._nsignal]
        out: Float32 = np.empty((self._nsignal, self.nsim, self.net.spec.njoint), np.float32)
        for group in self._groups:
            columns = rows[:, group.start : group.start + group.used]
            shape = (self._nsignal, len(group.joints), self.nsim)
            out[:, :, group.joints] = columns.reshape(shape).transpose(0, 2, 1)
        return out

    def push(self, signals: Float32) -> None:
        """Take the signals (nsignal, nsim, njoint) of a new step."""
        self.newest[0] = (self.newest[0] + 1) % self._depth
        self.write(0, signals)

    def write(self, age: int, signals: Float32, ids: Ids | slice = slice(None)) -> None:
        """Write signals (nsignal, rows, njoint) that are `age` steps old, of simulations `ids`."""
        slot = (int(self.newest[0]) - age) % self._depth
        rows = self.ring[slot * self._nsignal : (slot + 1) * self._nsignal]
        for group in self._groups:
            columns = rows[:, group.start : group.start + group.used]
            columns.reshape(self._nsignal, len(group.joints), self.nsim)[:, :, ids] = signals[
                :, :, group.joints
            ].transpose(0, 2, 1)

    def torque(self, out: FloatArray) -> None:
        """Write torques (nsim, njoint), limits of the net included."""
        for group in self._groups:
            self._turn(group)
        waiting = [
            self._pool.submit(self._run, share, scratch)
            for share, scratch in zip(self._shares[1:], self._scratch[1:], strict=False)
            if self._pool is not None
        ]
        self._run(self._shares[0], self._scratch[0])
        for future in waiting:
            future.result()
        self._collect(out)

    def _share_out(self) -> list[list[_Chunk]]:
        """The blocks of every thread, in chunks that are computed by one call a step of the net."""
        blocks = [(k, group.start + n * BLOCK) for k, group in enumerate(self._groups) for n in range(group.blocks)]
        share = max(_FEWEST_BLOCKS, -(-len(blocks) // self.threads))
        shares = []
        for first in range(0, len(blocks), share):
            chunks: list[_Chunk] = []
            for k, start in blocks[first : first + share]:
                if chunks and chunks[-1].group == k and chunks[-1].blocks < _MOST_BLOCKS:
                    chunks[-1] = chunks[-1]._replace(blocks=chunks[-1].blocks + 1)
                else:
                    chunks.append(_Chunk(k, start, 1))
            shares.append(chunks)
        return shares

    def _turn(self, group: _Group) -> None:
        """Bring the first layer's columns into the order that the ring has now."""
        rows, shift = self._depth * self._nsignal, (self._depth - 1 - int(self.newest[0])) * self._nsignal
        group.first[:, :rows] = group.turned[:, shift : shift + rows]

    def _run(self, chunks: list[_Chunk], scratch: _Scratch) -> None:
        """Layer by layer; a product over blocks is one of the same shape for each."""
        activate = _elu if self.net.spec.activation == "elu" else _softsign
        for chunk in chunks:
            group, end = self._groups[chunk.group], chunk.start + chunk.blocks * BLOCK
            n = chunk.blocks * BLOCK // self._width
            x = self.ring[:, chunk.start : end].reshape(-1, n, self._width).swapaxes(0, 1)
            for k, weight in enumerate((group.first, *group.rest)):
                layer = scratch.layer[k][:n]
                value = np.matmul(weight, x, out=layer[:, :-1])
                if k < len(group.rest):
                    activate(value, scratch.spare[:n, : len(weight)])
                    x = layer
            self._out[chunk.start : end] = value[:, 0].reshape(-1)

    def _collect(self, out: FloatArray) -> None:
        for group in self._groups:
            values = self._out[group.start : group.start + group.used]
            torque = values.reshape(len(group.joints), self.nsim).T * self.net.scale[group.joints]
            out[:, group.joints] = torque
        if self.net.spec.limit:
            limit = np.array(self.net.spec.limit)
            np.multiply(np.tanh(out / limit), limit, out=out)


class _Scratch:
    """Buffers of one thread: a layer's blocks, each with a row of ones below it for the next layer's bias."""

    def __init__(self, sizes: tuple[int, ...], width: int) -> None:
        n = _MOST_BLOCKS * BLOCK // width
        self.layer: list[Float32] = [np.ones((n, size + 1, width), np.float32) for size in sizes]
        self.spare: Float32 = np.empty((n, max(sizes), width), np.float32)


@cache
def product_width(shapes: tuple[tuple[int, int], ...]) -> int:
    """Columns of a product such that this computer's BLAS sums all of them alike, for weights of these shapes."""
    return next(width for width in _WIDTHS if all(_alike(shape, width) for shape in shapes))


def _alike(shape: tuple[int, int], width: int) -> bool:
    """Whether equal columns come out equal, bit for bit."""
    weight = np.sin(np.arange(1, 1 + shape[0] * shape[1], dtype=np.float32)).reshape(shape)
    column = np.cos(np.arange(shape[1], dtype=np.float32))
    out = np.matmul(weight, np.repeat(column[None, :, None], width, axis=2))[0]
    return bool((out == out[:, :1]).all())


def _elu(x: Float32, spare: Float32) -> None:
    """elu + 1, in place."""
    low = np.minimum(x, 0.0, out=spare)
    np.exp(low, out=low)
    np.maximum(x, 0.0, out=x)
    np.add(x, low, out=x)


def _softsign(x: Float32, spare: Float32) -> None:
    """x / (1 + |x|), in place."""
    size = np.abs(x, out=spare)
    size += 1.0
    np.divide(x, size, out=x)


def _one_thread_a_product() -> None:
    """Keep BLAS from spreading single blocks over the cores, for the rest of the process: steps took longer."""
    with suppress(ImportError):
        import_module("threadpoolctl").threadpool_limits(limits=1, user_api="blas")


def _prepare(net: ActuatorNet, k: int) -> tuple[Float32, Float32, tuple[Float32, ...]]:
    """A group's weights with normalisation and biases folded in: turned taps, first layer, the others."""
    spec = net.spec
    weight, bias = (part.astype(np.float64) for part in net.layers[k][0])
    nsignal, ntap, size = len(spec.signals), len(spec.taps), len(bias)
    taps = weight[:, : spec.ninput].reshape(size, nsignal, ntap) / net.std[k][:, None]
    bias = bias - (taps * net.mean[k][:, None]).sum(axis=(1, 2))
    by_age = np.zeros((size, spec.depth, nsignal))
    by_age[:, list(spec.taps)] = taps.transpose(0, 2, 1)
    oldest_first = by_age[:, ::-1].reshape(size, -1)  # the order of the ring when its last slot is the newest
    turned = np.concatenate([oldest_first, oldest_first], axis=1)
    first = np.concatenate([oldest_first, weight[:, spec.ninput :], bias[:, None]], axis=1)
    rest: list[FloatArray] = []
    for layer in net.layers[k][1:]:
        weight, bias = (part.astype(np.float64) for part in layer)
        if spec.activation == "elu":
            bias = bias - weight.sum(axis=1)
        rest.append(np.concatenate([weight, bias[:, None]], axis=1))
    turned32, first32, *rest32 = (np.ascontiguousarray(part, np.float32) for part in (turned, first, *rest))
    return turned32, first32, tuple(rest32)


_FEWEST_BLOCKS = 2  # per thread: less is not worth waking one
_MOST_BLOCKS = 6  # in one call: more leave the cache, fewer make threads wait for each other between calls
