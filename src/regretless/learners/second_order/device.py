r"""Panels on a GPU: P and the matrix products on the device, the recursion over the rows of a panel on the processor.

While the processor plays a panel, the device applies the updates of the panel before and multiplies P with the rows of
the panel after. These products lack the updates of the panel in play, which are of low rank:

.. math:: V_0 = P\,(I \otimes x), \qquad V_0 \leftarrow V_0 - U^T U\,(I \otimes x),

so that the second part is a small product once U is known. P is on the device only during a call: it is copied there
before the first panel and back after the last, so that everything else (files, copies, single rows, certificates) finds
the state where it always is. If the device fails, the state is that from before the call.

PyTorch does the products. Results agree with those of the processor to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from threading import Thread
from typing import Any, ClassVar, NamedTuple

import numpy as np

from regretless.core.errors import TooLarge
from regretless.core.interrupts import listen, uninterrupted
from regretless.core.learner import OnlineLearner
from regretless.core.types import Array
from regretless.learners.second_order import panels
from regretless.learners.second_order.panels import Kernels, Panel
from regretless.learners.second_order.rounding import ROOT, most_mass

RANK = 144  # rows of V_0 per panel: with more, the recursion on the processor takes longer
SPARE = 1.2  # of the memory that P and the panels take


class Ahead(NamedTuple):
    """A panel whose products are on the device."""

    rows: slice
    x: Any  # (b, d)
    flat: Any  # V_0, (r b, size)
    square: Array  # (b,): |x|^2, on the processor


class PlaysOnDevice(OnlineLearner):
    """A second-order learner whose panels can be played on a GPU: the parameter `device`."""

    device: str | None = None
    _learned: ClassVar[tuple[str, ...]] = ("_resident",)
    _resident: Resident | None = None

    def _begin(self, n_features: int) -> None:  # `load` calls it too
        self._require_name()
        super()._begin(n_features)

    def _open_block(self, X: Any, y: Any, classes: Any, sample_weight: Any, keep: bool) -> Any:
        self._require_name()
        if self.device is not None:  # an error now, before anything changes
            torch_device(self.device)
        return super()._open_block(X, y, classes, sample_weight, keep)

    def _require_name(self) -> None:
        if not isinstance(self.device, str | None):
            raise ValueError(f'device={self.device!r} is not supported: give None, or a name such as "cuda".')

    def _play_panels(self, kernels: Kernels, X: Array, Y: Array, weight: Array, constants: Any, out: Array) -> None:
        """`panels.play`, on the device if there is one."""
        state = self.state_
        wanted = self.device is not None and not state.tally[ROOT] and panels.pays(state.w.size, len(X))
        if self._resident is None and wanted:
            self._resident = Resident(str(self.device), state)
        if self._resident is None:
            panels.play(kernels, state, X, Y, weight, constants, out)
            return
        done = self._resident.play(kernels, X, Y, weight, constants, out)
        if done < len(X):  # P has too few digits
            self._end_block()
            panels.play(kernels, state, X[done:], Y[done:], weight[done:], constants, out[done:])

    def _end_block(self) -> None:
        """Bring the state back from the device."""
        resident, self._resident = self._resident, None
        if resident is not None:
            resident.bring_back()

    def _foresee_panels(self, kernels: Kernels, X: Array, Y: Array, constants: Any, out: Array) -> bool:
        """Forecast a block on the device; False if there is none, or if the processor is faster."""
        state = self.state_
        if self.device is None or state.tally[ROOT] or not panels.pays(state.w.size, len(X)):
            return False
        try:
            resident = Resident(str(self.device), state)
        except ValueError:  # a learner from a machine with a GPU can forecast on one without
            return False
        resident.foresee(kernels, X, Y, constants, out)
        return True


@cache
def torch_device(device: str) -> tuple[Any, Any]:
    """PyTorch and the device of this name; an error if either is missing."""
    try:
        import torch
    except ImportError as error:
        raise ValueError(
            f"device={device!r} needs PyTorch, which is not installed: pip install 'regretless[gpu]', or use "
            "device=None."
        ) from error
    try:
        found = torch.device(device)
        torch.empty(1, device=found)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(
            f"device={device!r} cannot be used: {str(error).splitlines()[0]}. Use device=None for the processor."
        ) from error
    return torch, found


class Resident:
    """The state of a learner on a device."""

    def __init__(self, device: str, state: Any) -> None:
        self.torch, self.device = torch_device(device)
        self.state = state
        self._before = state.w.copy(), state.tally.copy()
        self._require_memory()
        self.P = self.torch.from_numpy(state.P).to(self.device)
        if self.P.data_ptr() == state.P.ctypes.data:  # PyTorch's device "cpu" shares the memory
            self.P = self.P.clone()
        self.w = self.torch.from_numpy(state.w.copy()).to(self.device)
        self._failed = False
        # Copies from and to memory that cannot be swapped do not wait for the device. One area for each direction is
        # enough: the recursion of a panel is over before the next one is on its way, and the reverse.
        self._from_device = self._area(RANK * RANK + RANK)
        self._to_device = self._area(RANK * RANK + RANK)
        # Fresh memory for the way back, which the system provides while the device works: this takes longer than the
        # copy. A copy that fails leaves P as it was.
        self._home = Thread(target=self._prepare_return, daemon=True)
        self._back = np.empty_like(state.P)
        self._home.start()

    def _require_memory(self) -> None:
        """Refuse a state that does not fit, with its size."""
        needed = SPARE * (self.state.P.nbytes + 4 * RANK * self.state.w.size * 8)
        if self.device.type == "cuda":
            free, total = self.torch.cuda.mem_get_info(self.device)
            if needed > free:
                raise TooLarge(
                    f"this learner needs {needed / 2**30:.1f} GiB on {self.device}, which has {free / 2**30:.1f} of "
                    f"{total / 2**30:.1f} GiB free: use fewer features or classes, precision='single', or device=None."
                )

    def _prepare_return(self) -> None:
        self._back.fill(0.0)

    def _area(self, n: int) -> Any:
        return self.torch.empty(n, dtype=self.torch.float64, pin_memory=self.device.type == "cuda")

    def play(self, kernels: Kernels, X: Array, Y: Array, weight: Array, constants: Any, out: Array) -> int:
        """Play a block; returns the number of rows for which P has enough digits."""
        try:
            with self.torch.inference_mode():
                return self._play(kernels, X, Y, weight, constants, out)
        except RuntimeError:  # of the device
            self._failed = True
            raise

    def _play(self, kernels: Kernels, X: Array, Y: Array, weight: Array, constants: Any, out: Array) -> int:
        tally = self.state.tally
        ahead = self._look_ahead(X)
        now = next(ahead)
        said = self._begin(now)
        while True:
            after = next(ahead, None)
            panel = self._panel(now, said)
            with uninterrupted():
                done = kernels.run_panel(panel, tally, Y[now.rows], weight[now.rows], constants, out[now.rows])
                U = self._updates(now, panel)
                if after is not None:
                    self._correct(after, U)
                    said = self._begin(after)
                self.P.addmm_(U.T, U, alpha=-1.0)
            if done < len(now.x):
                return now.rows.start + int(done)
            if after is None:
                return len(X)
            now = after
            listen()

    def foresee(self, kernels: Kernels, X: Array, Y: Array, constants: Any, out: Array) -> None:
        """Forecast a block: its rows have weight 0, so that nothing is learned."""
        tally = self.state.tally.copy()
        with self.torch.inference_mode():
            for now in self._look_ahead(X):
                panel = self._panel(now, self._begin(now))
                kernels.run_panel(panel, tally, Y[now.rows], np.zeros(len(now.x)), constants, out[now.rows])
                listen()

    def bring_back(self) -> None:
        """Copy the state to the processor; or restore it, if the device has failed."""
        P, w, tally = self.state
        self._home.join()
        try:
            if not self._failed:
                self.torch.from_numpy(self._back).copy_(self.P)
                weights = self.w.cpu().numpy()
        except RuntimeError:
            self._failed = True
            raise
        finally:
            if self._failed:
                w[...], tally[...] = self._before
        if not self._failed:
            P[...] = self._back
            w[...] = weights
            panels.mirror(P)

    # ------------------------------------------------------------------ one panel

    def _look_ahead(self, X: Array) -> Iterator[Ahead]:
        """The products of P, as it is when the next panel is asked for, with the rows of each panel, copy by copy."""
        (n, d), size = X.shape, self.P.shape[0]
        b = 1 << (max(1, RANK // (size // d)).bit_length() - 1)
        there = self.torch.from_numpy(np.ascontiguousarray(X)).to(self.device)
        square = np.einsum("ij,ij->i", X, X)
        for first in range(0, n, b):
            rows = slice(first, min(first + b, n))
            V0 = self.torch.matmul(there[rows].to(self.P.dtype), self.P.view(size // d, d, size))
            yield Ahead(rows, there[rows], V0.reshape(-1, size), square[rows])

    def _begin(self, ahead: Ahead) -> tuple[Any, Any]:
        """G and m_0 of a panel, on their way to the processor; and the event of their arrival."""
        torch, (_, x, flat, _) = self.torch, ahead
        b, d = x.shape
        r = flat.shape[0] // b
        products = torch.matmul(torch.cat([flat.double(), self.w[None]]).view(r * b + 1, r, d), x.T)
        if self.device.type != "cuda":
            return products, None
        arrived = self._from_device[: products.numel()].view(products.shape)
        arrived.copy_(products, non_blocking=True)
        event = torch.cuda.Event()
        event.record()
        return arrived, event

    def _panel(self, ahead: Ahead, said: tuple[Any, Any]) -> Panel:
        """The panel before its first row."""
        products, event = said
        if event is not None:
            event.synchronize()
        found = products.numpy()  # (r b + 1, r, b), the last of them m_0
        rank, (r, b) = len(found) - 1, found.shape[1:]
        return Panel(
            G=np.ascontiguousarray(found[:rank].reshape(r, b, r, b).transpose(1, 0, 3, 2)).reshape(rank, rank),
            U=np.zeros((rank, rank)),
            omega=np.zeros(rank),
            m0=np.ascontiguousarray(found[rank].T),
            square=ahead.square,
            most_mass=float(most_mass(self.state.P)),
            most_growth=math.inf,
            size=self.state.w.size,
        )

    def _updates(self, ahead: Ahead, panel: Panel) -> Any:
        """U, the rows whose squares P loses; moves w."""
        b, rank = len(ahead.x), ahead.flat.shape[0]
        r = rank // b
        area = self._to_device[: rank * rank + rank].view(rank + 1, rank)
        numbers = area.numpy()
        numbers[:rank].reshape(rank, r, b)[...] = panel.U.reshape(rank, b, r).swapaxes(1, 2)
        numbers[rank].reshape(r, b)[...] = panel.omega.reshape(b, r).T
        moved = area.to(self.device, non_blocking=True) @ ahead.flat.double()
        self.w += moved[rank]
        return moved[:rank].to(self.P.dtype)

    def _correct(self, ahead: Ahead, U: Any) -> None:
        """Take the updates U into the products of the panel after, which were computed without them."""
        d = ahead.x.shape[1]
        along = self.torch.matmul(U.view(len(U), -1, d), ahead.x.to(U.dtype).T).reshape(len(U), -1)
        ahead.flat.addmm_(along.T, U, alpha=-1.0)
