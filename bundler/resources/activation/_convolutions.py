"""What a framework is asked: its cuDNN, a convolution on the GPU, and how long it takes.

Frameworks are used as anybody uses them, with their own defaults (TF32 among them, hence
the width of the tolerance).
"""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import dataclass
from types import ModuleType
from typing import Callable, Protocol, SupportsFloat

# TF32 keeps 10 bits of each of the 27 products' factors; they are about 1 in size.
TOLERANCE = 0.01
_WARM_UP = 10
_TIMED = 50
_SHAPE = (1, 64, 224, 224)


@dataclass(frozen=True)
class Convolved:
    """What came of 1x3x224x224 with 64 filters 3x3, padded by 1.

    Args:
        shape: of the result.
        expected_shape: what it must be.
        finite: no value is infinite or not a number.
        difference: the largest from the same convolution on the processor, if it is a number.
        device: where the result was computed, in the framework's words.
    """

    shape: tuple[int, ...]
    expected_shape: tuple[int, ...]
    finite: bool
    difference: float | None
    device: str

    @property
    def fault(self) -> str:
        """What is wrong with it, or nothing."""
        if self.shape != self.expected_shape:
            return f"the result has the shape {self.shape} instead of {self.expected_shape}"
        if not any(word in self.device.lower() for word in ("cuda", "gpu")):
            return f"it was computed on {self.device} instead of the GPU"
        if not self.finite:
            return "the result has values that are infinite or not numbers"
        if self.difference is None:
            return "the GPU's result cannot be compared with the processor's"
        if self.difference > TOLERANCE:
            return f"the GPU's result differs from the processor's by {self.difference:.3g}"
        return ""


class Framework(Protocol):
    """A framework that was imported."""

    def cudnn_version(self) -> int | str | None:
        """Say which cuDNN it has in mind: a number if it asked the library, else a text."""
        ...

    def gpu_fault(self) -> str:
        """Say why it can use no GPU; nothing when it can."""
        ...

    def convolve(self) -> Convolved:
        """Convolve on the GPU and on the processor."""
        ...

    def benchmark(self) -> dict[str, float] | str:
        """Give median milliseconds with and without cuDNN, or why they cannot be measured."""
        ...


class Torch:
    """PyTorch."""

    def __init__(self, module: ModuleType) -> None:
        self._torch = module

    def cudnn_version(self) -> int | None:
        """Say which cuDNN answers its call of `cudnnGetVersion`."""
        version = self._torch.backends.cudnn.version()
        return None if version is None else int(version)

    def gpu_fault(self) -> str:
        """Say why it can use no GPU."""
        if self._torch.cuda.is_available():
            return ""
        built = self._torch.version.cuda is not None
        return "torch sees no GPU" if built else "torch was built without CUDA"

    def convolve(self) -> Convolved:
        """Convolve on the GPU and on the processor."""
        torch = self._torch
        torch.manual_seed(0)
        layer, image = torch.nn.Conv2d(3, 64, 3, padding=1), torch.randn(1, 3, 224, 224)
        with torch.no_grad(), torch.backends.cudnn.flags(enabled=True):
            expected = layer(image)
            computed = layer.to("cuda")(image.to("cuda"))
            answer = computed.to("cpu")
        shape = tuple(answer.shape)
        is_right_shape = shape == _SHAPE
        difference = _number((answer - expected).abs().max()) if is_right_shape else None
        finite = bool(torch.isfinite(answer).all())
        return Convolved(shape, _SHAPE, finite, difference, str(computed.device))

    def benchmark(self) -> dict[str, float]:
        """Give median milliseconds with and without cuDNN for a batch of 32."""
        torch = self._torch
        layer = torch.nn.Conv2d(3, 64, 3, padding=1).to("cuda")
        batch = torch.randn(32, 3, 224, 224).to("cuda")
        times = {}
        for key, enabled in (("cudnn_on_ms", True), ("cudnn_off_ms", False)):
            with torch.no_grad(), torch.backends.cudnn.flags(enabled=enabled):
                times[key] = _median(lambda: layer(batch), torch.cuda.synchronize)
        return times


class TensorFlow:
    """TensorFlow 2."""

    def __init__(self, module: ModuleType) -> None:
        self._tensorflow = module

    def cudnn_version(self) -> str | None:
        """Say which cuDNN it was built for; it does not tell which one it opened."""
        version = self._tensorflow.sysconfig.get_build_info().get("cudnn_version")
        return str(version) if version else None

    def gpu_fault(self) -> str:
        """Say why it can use no GPU."""
        if self._tensorflow.config.list_physical_devices("GPU"):
            return ""
        if not self._tensorflow.test.is_built_with_cuda():
            return "tensorflow was built without CUDA"
        return "tensorflow sees no GPU; it names on stderr the CUDA libraries that it did not find"

    def convolve(self) -> Convolved:
        """Convolve on the GPU and on the processor."""
        tf = self._tensorflow
        batch, channels, height, width = _SHAPE
        with tf.device("/CPU:0"):
            image = tf.random.stateless_normal((1, height, width, 3), seed=(0, 1))
            filters = tf.random.stateless_normal((3, 3, 3, channels), seed=(0, 2)) * 0.1
            expected = tf.nn.conv2d(image, filters, strides=1, padding="SAME")
        with tf.device("/GPU:0"):
            computed = tf.nn.conv2d(image, filters, strides=1, padding="SAME")
        expected_shape = (batch, height, width, channels)
        shape = tuple(computed.shape)
        is_right_shape = shape == expected_shape
        finite = bool(tf.reduce_all(tf.math.is_finite(computed)))
        apart = _number(tf.reduce_max(tf.abs(computed - expected))) if is_right_shape else None
        return Convolved(shape, expected_shape, finite, apart, str(computed.device))

    def benchmark(self) -> str:
        """Say why there is no measurement."""
        return "tensorflow has no switch that turns cuDNN off, so there is nothing to compare"


FRAMEWORKS: dict[str, Callable[[ModuleType], Framework]] = {
    "torch": Torch,
    "tensorflow": TensorFlow,
}


def _number(value: SupportsFloat) -> float | None:
    # JSON has no word for what is not a number.
    number = float(value)
    return number if math.isfinite(number) else None


def _median(run: Callable[[], object], synchronize: Callable[[], object]) -> float:
    for _ in range(_WARM_UP):
        run()
    synchronize()
    times = []
    for _ in range(_TIMED):
        begin = time.perf_counter()
        run()
        synchronize()
        times.append(time.perf_counter() - begin)
    return round(statistics.median(times) * 1000, 4)
