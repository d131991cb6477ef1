"""The fit of one round: a correction that cancels errors through the linearised simulator.

With e the error and S the slope of the states of a window, d0 the present correction and d(x) the new one,

    min  mean |W (e + S (d(x) - d0(x)))|^2 + penalty mean |d(x)|^2 / u^2

W divides each state by the root mean square of its error without a correction, u is the root mean square correction
that would cancel all errors. Fitting through S rather than inverting it leaves alone what the commands cannot move, and
weighs joints by what they do. The linear part is solved; the net starts at zero on top of it and learns by Adam.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import torch

from trueup.calibrate.delta.config import DeltaCfg
from trueup.calibrate.delta.shooting import Linear
from trueup.core.arrays import FloatArray
from trueup.models.delta_net import DeltaNet

_CAP = 4.0  # of an error in its root mean square: contacts that come a step late count as this at most
_STEPS, _BATCH, _RATE = 1200, 512, 2e-3
_CG_STEPS, _CG_LEFT = 400, 1e-6  # of the linear part


def fit_net(net: DeltaNet, data: Linear, weight: FloatArray, cfg: DeltaCfg) -> DeltaNet:
    """The net after one round on `data`."""
    x = (np.clip(data.inputs, net.low, net.high) - net.mean) / net.std
    before = net(data.inputs)[:, list(net.spec.corrected)]
    error = data.error * weight
    scale = np.minimum(1.0, _CAP / np.maximum(np.abs(error), 1e-12))
    slope = data.slope * weight[:, None]
    slope = np.clip(slope, -1e3, 1e3) * scale[:, :, None]
    wanted = np.einsum("nij,nj->ni", slope, before) - error * scale
    ridge = cfg.penalty * float(np.mean(slope**2)) * slope.shape[1]
    linear = _solve(x, slope, wanted, ridge, _own(net) if cfg.linear == "own" else None)
    made = replace(net, linear=linear.astype(np.float32), layers=())
    if not cfg.hidden:
        return made
    return _with_net(made, x, slope, wanted, ridge, cfg)


def _own(net: DeltaNet) -> FloatArray:
    """(m, p): 1 where a corrected joint may see a column."""
    out = np.zeros(net.linear.shape)
    for row, joint in zip(out, net.spec.corrected, strict=True):
        row[list(net.spec.own(joint))] = 1.0
    return out


def _solve(x: FloatArray, slope: FloatArray, wanted: FloatArray, ridge: float, mask: FloatArray | None) -> FloatArray:
    """A (m, p) of min mean |S A x - w|^2 + ridge |A x|^2, by conjugate gradients on the normal equations.

    mask  (m, p), 0 where A stays zero
    """
    n, (m, p) = len(x), (slope.shape[2], x.shape[1])
    inner = np.einsum("nij,nik->njk", slope, slope)

    def product(flat: FloatArray) -> FloatArray:
        d = x @ flat.reshape(m, p).T
        back = np.einsum("njk,nk->nj", inner, d) + ridge * d
        out: FloatArray = ((back.T @ x / n + 1e-4 * ridge * flat.reshape(m, p)) * open_).ravel()
        return out

    open_ = np.ones((m, p)) if mask is None else mask
    right = ((np.einsum("nij,ni->nj", slope, wanted).T @ x / n) * open_).ravel()
    found, left = np.zeros_like(right), right.copy()
    way, size = left.copy(), float(left @ left)
    for _ in range(_CG_STEPS):
        moved = product(way)
        step = size / max(float(way @ moved), 1e-300)
        found, left = found + step * way, left - step * moved
        size, before = float(left @ left), size
        if size <= _CG_LEFT**2 * float(right @ right):
            break
        way = left + size / max(before, 1e-300) * way
    return found.reshape(m, p)


def _with_net(
    net: DeltaNet, x: FloatArray, slope: FloatArray, wanted: FloatArray, ridge: float, cfg: DeltaCfg
) -> DeltaNet:
    """A net on top of the linear part, with weight decay; a tenth of the windows tells when to stop."""
    generator = torch.Generator().manual_seed(cfg.seed)
    sizes = (x.shape[1], *cfg.hidden, slope.shape[2])
    parts: list[torch.nn.Module] = []
    for k, (a, b) in enumerate(pairwise(sizes)):
        layer = torch.nn.Linear(a, b)
        with torch.no_grad():
            gain = 0.0 if k == len(sizes) - 2 else 1.0 / np.sqrt(a)
            layer.weight.copy_(torch.randn(b, a, generator=generator) * gain)
            layer.bias.zero_()
        parts += [layer, torch.nn.ELU()]
    model = torch.nn.Sequential(*parts[:-1])
    seen, jacobian, goal = (torch.from_numpy(np.ascontiguousarray(one, np.float32)) for one in (x, slope, wanted))
    linear, limit = torch.from_numpy(net.linear), net.spec.limit_rad
    with torch.no_grad():
        base = seen @ linear.T

    def loss(rows: torch.Tensor) -> torch.Tensor:
        delta = limit * torch.tanh((base[rows] + model(seen[rows])) / limit)
        miss = torch.einsum("nij,nj->ni", jacobian[rows], delta) - goal[rows]
        return (miss**2).sum(1).mean() + ridge * (delta**2).sum(1).mean()

    order = torch.randperm(len(x), generator=generator)
    kept, rest = order[: len(x) // 10], order[len(x) // 10 :]
    adam = torch.optim.AdamW(model.parameters(), lr=_RATE, weight_decay=0.02)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(adam, _STEPS)
    best, best_state = float("inf"), {k: v.clone() for k, v in model.state_dict().items()}
    for step in range(_STEPS + 1):
        if step % 50 == 0:
            with torch.no_grad():
                now = float(loss(kept))
            if now < best:
                best, best_state = now, {k: v.clone() for k, v in model.state_dict().items()}
        rows = rest[torch.randint(len(rest), (min(_BATCH, len(rest)),), generator=generator)]
        adam.zero_grad()
        loss(rows).backward()  # type: ignore[no-untyped-call]
        adam.step()
        schedule.step()
    model.load_state_dict(best_state)
    layers = tuple(
        (one.weight.detach().numpy().copy(), one.bias.detach().numpy().copy())
        for one in model
        if isinstance(one, torch.nn.Linear)
    )
    return replace(net, layers=layers)
