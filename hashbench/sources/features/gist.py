"""GIST: how much of each scale and orientation an image holds, place by place."""

import numpy as np
import scipy.fft

from hashbench._parallel import in_threads
from hashbench._typing import ByteArray, Float32Array, FloatArray
from hashbench._validation import unexpected

N_SCALES = 4
N_ORIENTATIONS = 8
N_CELLS = 4  # a side of the grid
N_FEATURES = N_SCALES * N_ORIENTATIONS * N_CELLS**2

_SMALLEST_SIDE = 16  # pixels; four a cell
_CUTOFF = 4.0  # cycles per image where the whitening low-pass has gain 1/2
_CONTRAST_FLOOR = 0.2  # added to the local standard deviation of log intensity, so that flat regions stay flat
_WHITENING_MARGIN = 5  # pixels of symmetric padding
_FINEST_FREQUENCY = 0.3  # cycles per pixel at the centre of the finest scale
_SCALE_RATIO = 1.85  # between the centres of neighbouring scales
_RADIAL_DECAY = 3.5  # standard deviation 1 / sqrt(7) = 0.38 of the centre frequency
_ANGULAR_DECAY = 2 * np.pi  # standard deviation 1 / sqrt(4 pi) rad = 16 degrees
_FILTER_MARGIN = 32  # pixels of symmetric padding
_NEGLIGIBLE_GAIN = 1e-20  # taken as 0, because subnormal numbers are slow
_CHUNK = 64  # images a thread takes at a time


def gist(images: ByteArray) -> Float32Array:
    """Compute the GIST descriptor of images, 4 scales x 8 orientations x 4 x 4 cells.

    Images, uint8, are RGB (n, height, width, 3) or grey, (n, height, width, 1) or (n, height, width), with sides of at
    least 16 pixels, not necessarily equal; others raise HashbenchError. Returns float32 (n, 512), mean magnitudes, at
    least 0, in the order (scale, orientation, row, column), finest scale first. The wave vector of orientation o points
    o * 22.5 degrees counterclockwise from the right: o = 0 answers to vertical stripes. The descriptor of an image does
    not depend on the others. It is computed in float64 and rounded to the 11 significant bits of float16, so that
    machines agree: rounding errors, one part in 10^14 on average, change about one of 10^11 values.

    Notes
    -----
    The descriptor of [1]_ with the constants of its authors' MATLAB code, which hashing papers use:

    1. Grey is the mean of the channels (as in that code; luma would be another descriptor), stretched
       linearly to 0 to 255: brightness and contrast of the whole image have no effect.
    2. Whitening: x = log(1 + grey), and y = x - L x, where L is a Gaussian low-pass with gain
       2^-(k / 4)^2 at k cycles per image. An image is here the longer side with its margin of 5 pixels.
    3. Local contrast: z = y / (0.2 + sqrt(L y^2)).
    4. Filters: for scale s = 0..3 and orientation o = 0..7, transfer function
       exp(-3.5 (f / f_s - 1)^2 - 2 pi (t + pi o / 8)^2) at frequency f in cycles per pixel and angle t
       (rows point down; the angle difference is wrapped to -pi..pi), centred at f_s = 0.3 / 1.85^s.
       The low gain at f = 0 (e^-3.5 and less) meets next to nothing after the whitening.
    5. The magnitude of the complex response, without a margin of 32 pixels, averaged over each cell;
       the cells of a side of n pixels end at the whole parts of n / 4, 2 n / 4, 3 n / 4 and n.

    Both margins continue the image by reflection. The code pads images that are not square or of odd
    size further and measures their vertical frequencies against the width; here pixels are square.

    References
    ----------
    .. [1] A. Oliva, A. Torralba, "Modeling the Shape of the Scene: A Holistic Representation of the
       Spatial Envelope", International Journal of Computer Vision 42(3), 2001.

    Examples
    --------
    >>> stripes = np.tile(np.array([0, 0, 200, 200], dtype=np.uint8), (1, 32, 8))
    >>> energy = gist(stripes).reshape(4, 8, 16).mean(axis=2)
    >>> [int(i) for i in np.unravel_index(energy.argmax(), energy.shape)]
    [0, 0]
    """
    _check(images)
    height, width = images.shape[1:3]
    low_pass = _low_pass(height + 2 * _WHITENING_MARGIN, width + 2 * _WHITENING_MARGIN)
    filters = _filters(height + 2 * _FILTER_MARGIN, width + 2 * _FILTER_MARGIN)
    rows, columns = _cell_means(height), _cell_means(width).T
    features = np.empty((len(images), N_FEATURES), dtype=np.float16)

    def describe(part: slice) -> None:
        for image, out in zip(
            images[part], features[part], strict=True
        ):  # one by one, since the filters then fit into a cache
            magnitude = _magnitude(_whitened(_stretched(image), low_pass), filters)
            out[:] = (rows @ magnitude @ columns).ravel()

    parts = [slice(start, start + _CHUNK) for start in range(0, len(images), _CHUNK)]
    for _ in in_threads(describe, parts):
        pass
    return features.astype(np.float32)


def _check(images: ByteArray) -> None:
    is_image = images.ndim == 3 or (images.ndim == 4 and images.shape[3] in (1, 3))
    if images.dtype != np.uint8 or not is_image or min(images.shape[1:3]) < _SMALLEST_SIDE:
        shapes = "(n, height, width), (n, height, width, 1) or (n, height, width, 3)"
        least = f"height and width of at least {_SMALLEST_SIDE}; convert or resize them"
        raise unexpected(images, "images", f"uint8 of shape {shapes} with {least}")


def _stretched(image: ByteArray) -> FloatArray:
    grey = image.mean(axis=2) if image.ndim == 3 else image.astype(np.float64)
    grey -= grey.min()
    return np.asarray(grey * (255 / (grey.max() or 1)))


def _whitened(grey: FloatArray, low_pass: FloatArray) -> FloatArray:
    log = np.pad(np.log1p(grey), _WHITENING_MARGIN, mode="symmetric")
    detail = log - _smoothed(log, low_pass)
    deviation = np.sqrt(np.abs(_smoothed(detail**2, low_pass)))
    inside = slice(_WHITENING_MARGIN, -_WHITENING_MARGIN)
    return (detail / (_CONTRAST_FLOOR + deviation))[inside, inside]


def _smoothed(image: FloatArray, low_pass: FloatArray) -> FloatArray:
    return np.asarray(scipy.fft.irfft2(scipy.fft.rfft2(image) * low_pass, s=image.shape))


def _magnitude(image: FloatArray, filters: FloatArray) -> FloatArray:
    spectrum = scipy.fft.fft2(np.pad(image, _FILTER_MARGIN, mode="symmetric"))
    inside = slice(_FILTER_MARGIN, -_FILTER_MARGIN)
    response = scipy.fft.ifft(spectrum * filters, axis=2, overwrite_x=True)[:, :, inside]  # the rest is not needed
    return np.asarray(np.abs(scipy.fft.ifft(response, axis=1)[:, inside]))  # (n_filters, height, width)


def _low_pass(height: int, width: int) -> FloatArray:
    """Compute the gains of the whitening at the frequencies of ``rfft2``."""
    cycles = max(height, width) * np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width))
    return np.asarray(np.exp2(-((cycles / _CUTOFF) ** 2)))


def _filters(height: int, width: int) -> FloatArray:
    """Compute the gains of the filters, (n_scales * n_orientations, height, width), at the frequencies of ``fft2``."""
    y, x = np.fft.fftfreq(height)[:, None], np.fft.fftfreq(width)
    centres = _FINEST_FREQUENCY / _SCALE_RATIO ** np.arange(N_SCALES)
    angles = np.arctan2(y, x) + np.pi / N_ORIENTATIONS * np.arange(N_ORIENTATIONS)[:, None, None]
    wrapped = np.where(angles > np.pi, angles - 2 * np.pi, angles)
    radial = _RADIAL_DECAY * (np.hypot(y, x) / centres[:, None, None] - 1) ** 2
    gains = np.exp(-radial[:, None] - _ANGULAR_DECAY * wrapped**2)  # (n_scales, n_orientations, height, width)
    gains[gains < _NEGLIGIBLE_GAIN] = 0
    return np.asarray(gains.reshape(-1, height, width))


def _cell_means(side: int) -> FloatArray:
    """Compute the matrix that averages over the cells of a side, (n_cells, side)."""
    edges = np.linspace(0, side, N_CELLS + 1).astype(int)
    cell = np.searchsorted(edges, np.arange(side), side="right") - 1
    return np.asarray((cell == np.arange(N_CELLS)[:, None]) / np.diff(edges)[:, None])
