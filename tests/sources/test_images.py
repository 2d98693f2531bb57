import os
import tarfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hashbench.errors import HashbenchError
from hashbench.sources import images
from hashbench.sources.images import ImageArrays, ImageFiles, image_files, read_tree
from hashbench.store import inputs

RNG = np.random.default_rng(0)
NOISE = RNG.integers(0, 256, (7, 9, 11, 3), dtype=np.uint8)


def write_image(path, array=None, mode="RGB", size=(6, 5), **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(array) if array is not None else Image.new(mode, size)
    image.save(path, **options)
    return path


def numbered(folder, names):
    """Images of one colour: the number of the name in the list."""
    for number, name in enumerate(names):
        write_image(folder / name, np.full((4, 4, 3), number, np.uint8))
    return folder


def archived(folder, path, names):
    with tarfile.open(path, f"w:{path.suffix[1:]}" if path.suffix != ".tar" else "w") as archive:
        for name in names:
            archive.add(folder / name, f"./some/root/{name}")
    return path


def resized(size):
    """Return the first three images of the noise as Pillow resizes them."""
    images = (Image.fromarray(image).resize((size, size), Image.Resampling.BICUBIC) for image in NOISE[:3])
    return np.stack([np.asarray(image) for image in images])


def refused(source, words):
    with pytest.raises(HashbenchError, match=words):
        read_tree(source)


def read_one(path):
    """Read one image file at 8 x 8 pixels."""
    (image,) = ImageFiles([path]).read(slice(0, 1), 8)
    return image


# ---------------------------------------------------------------- arrays


@pytest.mark.parametrize(("shape", "expected"), [((3, 8, 8, 3), 8), ((3, 8, 9, 3), None)])
def test_native_size_is_that_of_squares(shape, expected):
    assert ImageArrays(np.zeros(shape, np.uint8)).native_size == expected


def test_arrays_are_resized_as_pillow_does():
    np.testing.assert_array_equal(ImageArrays(NOISE).read(slice(0, 3), 6), resized(6))
    square = NOISE[:, :9, :9]
    np.testing.assert_array_equal(ImageArrays(square).read(slice(0, 7), 9), square)


def test_content_changes_with_pixels_order_and_shape():
    contents = [
        ImageArrays(array).content for array in (NOISE, NOISE[::-1], NOISE ^ 1, NOISE.reshape(7, 11, 9, 3), NOISE[:6])
    ]
    assert len(set(contents)) == 5
    assert ImageArrays(NOISE.copy()).content == contents[0]
    assert all(len(content) == 16 for content in contents)


# ---------------------------------------------------------------- files


def test_files_of_different_sizes_need_a_size(tmp_path):
    images = ImageFiles([write_image(tmp_path / "a.png", NOISE[0])])
    assert images.native_size is None
    with pytest.raises(HashbenchError, match="--image-size"):
        images.read(slice(0, 1))
    assert images.read(slice(0, 1), 5).shape == (1, 5, 5, 3)


def test_files_are_read_in_the_order_given_and_resized_as_pillow_does(tmp_path):
    paths = [write_image(tmp_path / f"{name}.png", NOISE[number]) for number, name in enumerate("cab")]
    images = ImageFiles(paths)
    assert len(images) == 3
    np.testing.assert_array_equal(images.read(slice(0, 3), 6), resized(6))
    np.testing.assert_array_equal(images.read(slice(1, 2), 6), resized(6)[1:2])


def test_grey_becomes_three_equal_channels(tmp_path):
    grey = NOISE[0, :8, :8, 0]
    image = read_one(write_image(tmp_path / "a.png", grey))
    np.testing.assert_array_equal(image, np.repeat(grey[:, :, None], 3, axis=2))


@pytest.mark.parametrize("mode", ["1", "LA", "P", "RGBA", "CMYK"])
def test_every_mode_becomes_rgb(tmp_path, mode):
    suffix = ".jpg" if mode == "CMYK" else ".png"
    image = read_one(write_image(tmp_path / f"a{suffix}", mode=mode))
    assert (image.shape, image.dtype) == ((8, 8, 3), np.uint8)


@pytest.mark.parametrize(
    "content",
    [b"", b"no image", b"\xff\xd8\xff\xe0\x00\x10JFIF", b"\x89PNG\r\n\x1a\n" + b"\x00" * 20],
    ids=["empty", "text", "jpeg head", "png head"],
)
def test_broken_image_is_named(tmp_path, content):
    good = write_image(tmp_path / "good.png", NOISE[0])
    broken = tmp_path / "broken.png"
    broken.write_bytes(content)
    with pytest.raises(HashbenchError, match=r"cannot decode image .*broken\.png: "):
        ImageFiles([good, broken]).read(slice(0, 2), 8)


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".tif"])
def test_image_cut_short_is_named(tmp_path, suffix):
    path = write_image(tmp_path / f"cut{suffix}", NOISE[0].repeat(9, axis=0))
    content = path.read_bytes()
    for share in (0.05, 0.3, 0.7):
        path.write_bytes(content[: int(share * len(content))])
        with pytest.raises(HashbenchError, match=rf"cannot decode image .*cut\{suffix}: "):
            read_one(path)


def test_missing_image_is_named(tmp_path):
    images = ImageFiles([tmp_path / "gone.png"])
    with pytest.raises(HashbenchError, match=r"gone\.png"):
        images.read(slice(0, 1), 8)
    with pytest.raises(HashbenchError, match=r"cannot read .*gone\.png as an image"):
        _ = images.content


def test_content_of_files_changes_when_one_does(tmp_path):
    paths = [write_image(tmp_path / f"{name}.png", NOISE[0]) for name in "ab"]
    before = ImageFiles(paths).content
    assert ImageFiles(paths).content == before
    assert ImageFiles(paths[::-1]).content != before
    state = paths[0].stat()
    os.utime(paths[0], ns=(state.st_atime_ns, state.st_mtime_ns + 10**9))
    later = ImageFiles(paths).content
    assert later != before
    write_image(tmp_path / "new.png", 255 - NOISE[0]).replace(paths[1])
    os.utime(paths[1], ns=(state.st_atime_ns, state.st_mtime_ns))  # another file at the same time
    assert ImageFiles(paths).content not in (before, later)


@pytest.mark.parametrize(
    ("shapes", "expected"), [([(8, 8)] * 3, 8), ([(8, 8), (8, 8), (9, 9)], None), ([(8, 9)] * 2, None)]
)
def test_native_size_of_files_is_that_of_equal_squares(tmp_path, shapes, expected):
    paths = [write_image(tmp_path / f"{number}.png", NOISE[number, :h, :w]) for number, (h, w) in enumerate(shapes)]
    files = ImageFiles(paths)
    assert files.native_size == expected
    if expected:
        np.testing.assert_array_equal(files.read(slice(0, 3)), NOISE[:3, :8, :8])


def test_sixteen_bits_become_eight(tmp_path):
    gradient = np.linspace(0, 65535, 64).astype(np.uint16).reshape(8, 8)
    Image.fromarray(gradient).save(tmp_path / "a.png")
    image = read_one(tmp_path / "a.png")
    for channel in range(3):
        np.testing.assert_allclose(image[..., channel], gradient / 65535 * 255, atol=0.5 + 1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_values_without_a_known_range_are_refused(tmp_path, dtype):
    Image.fromarray(np.ones((8, 8), dtype)).save(tmp_path / "a.tiff")
    with pytest.raises(HashbenchError, match=r"cannot decode image .*a\.tiff: values of mode [IF] have no known range"):
        read_one(tmp_path / "a.tiff")


@pytest.mark.parametrize("limit", [10, 30])
def test_an_image_too_large_to_be_true_is_refused(tmp_path, monkeypatch, limit):
    path = write_image(tmp_path / "a.png", NOISE[0, :6, :7])
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)  # 42 pixels: a warning above it, an error above twice
    with pytest.raises(HashbenchError, match=r"cannot decode image .*a\.png: .*42 pixels"):
        read_one(path)


def test_only_documented_formats_are_opened_so_that_no_image_starts_a_program(tmp_path, monkeypatch):
    from PIL import EpsImagePlugin

    path = tmp_path / "x.png"
    Image.new("RGB", (8, 8)).save(path, format="EPS")
    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", lambda *_, **__: pytest.fail("a program was started"))
    with pytest.raises(HashbenchError, match=r"cannot decode image .*x\.png: .* BMP, GIF, JPEG, PNG, PPM, TIFF, WEBP"):
        read_one(path)


def test_a_pipe_called_like_an_image_is_refused_and_not_waited_for(tmp_path):
    numbered(tmp_path, ["a/0.png", "b/1.png"])
    os.mkfifo(tmp_path / "a" / "2.png")
    (tmp_path / "a" / "3.png").symlink_to("none.png")
    files = read_tree(tmp_path).images
    assert len(files) == 4
    with pytest.raises(HashbenchError, match=r"2\.png is a pipe or a device"):
        files.read(slice(0, 2), 8)
    with pytest.raises(HashbenchError, match=r"3\.png is a link to none\.png, which does not exist"):
        files.read(slice(2, 3), 8)


# ---------------------------------------------------------------- trees

NAMES = [
    "train/cat/2.png",
    "train/ant/10.png",
    "train/ant/1.png",
    "test/cat/0.png",
    "test/ant/5.png",
    "extra/bee/3.png",
]
IN_ORDER = [2, 1, 0, 5, 4, 3]  # train first, then by split, class and file name


@pytest.mark.parametrize("packing", ["folder", "a.tar", "a.tar.gz", "a.tar.xz"])
def test_tree_has_train_first_then_split_class_and_name(tmp_path, packing):
    source = numbered(tmp_path / "folder", NAMES)
    if packing != "folder":
        source = archived(source, tmp_path / packing, NAMES)
    tree = read_tree(source)
    np.testing.assert_array_equal(tree.images.read(slice(0, 6), 4)[:, 0, 0, 0], IN_ORDER)
    assert tree.splits == ["train", "train", "train", "extra", "test", "test"]
    assert tree.classes == ["ant", "bee", "cat"]
    np.testing.assert_array_equal(tree.labels, [0, 0, 2, 1, 0, 2])
    assert tree.labels.dtype == np.int64
    assert not tree.is_lossy


def test_tree_of_classes_alone_has_no_splits(tmp_path):
    tree = read_tree(numbered(tmp_path, ["b/0.png", "a/1.png"]))
    assert tree.splits == ["", ""]
    assert tree.classes == ["a", "b"]
    np.testing.assert_array_equal(tree.images.read(slice(0, 2), 4)[:, 0, 0, 0], [1, 0])


def test_other_files_are_left_out_and_any_case_of_the_ending_counts(tmp_path):
    numbered(tmp_path, ["a/0.png", "a/1.PNG"])
    (tmp_path / "a" / "Thumbs.db").write_bytes(b"x")
    (tmp_path / "readme.txt").write_text("x")
    (tmp_path / "a" / "folder.png").mkdir()
    assert len(read_tree(tmp_path).images) == 2


@pytest.mark.parametrize(("name", "expected"), [("a/1.JPEG", True), ("a/1.webp", False)])
def test_jpeg_files_are_lossy(tmp_path, name, expected):
    assert read_tree(numbered(tmp_path, ["a/0.png", name])).is_lossy == expected


def test_images_of_a_folder_may_differ_in_size_but_not_those_of_an_archive(tmp_path):
    names = ["a/0.png", "a/1.png"]
    numbered(tmp_path / "t", names)
    write_image(tmp_path / "t" / names[1], NOISE[0])
    assert read_tree(tmp_path / "t").images.read(slice(0, 2), 8).shape == (2, 8, 8, 3)
    refused(
        archived(tmp_path / "t", tmp_path / "a.tar", names),
        r"differ in size, such as \S*/a/0\.png and \S*/root/a/1\.png; unpack",
    )


def test_tree_without_images_is_refused(tmp_path):
    refused(tmp_path, r"there are no images in .*, expected folders train/<class>/ or <class>/")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["train/a/images/0.png", "train/b/images/1.png", "val/a/images/2.png"], r"image .*images/.* lies too deep"),
        (["a/0.png", "train/b/1.png"], r"at different depths: a/0\.png and train/b/1\.png"),
        (["0.png"], r"image 0\.png of .* is not in a folder"),
    ],
)
def test_images_at_other_depths_are_refused(tmp_path, names, message):
    refused(numbered(tmp_path, names), message)


def test_folders_that_all_images_share_do_not_count(tmp_path):
    tree = read_tree(numbered(tmp_path, ["set/all/train/a/0.png", "set/all/train/b/1.png", "set/all/test/a/2.png"]))
    assert (tree.splits, tree.classes) == (["train", "train", "test"], ["a", "b"])


def test_hidden_files_are_left_out(tmp_path):
    names = ["a/0.png", "b/1.png", "a/._0.png", ".cache/2.png"]
    folder = numbered(tmp_path / "folder", names)
    for tree in map(read_tree, (folder, archived(folder, tmp_path / "a.tar", names))):
        assert (len(tree.images), tree.classes) == (2, ["a", "b"])


def test_an_archive_that_would_not_fit_into_memory_is_refused(tmp_path, monkeypatch):
    names = ["a/0.png", "a/1.png"]
    path = archived(numbered(tmp_path / "t", names), tmp_path / "a.tar", names)
    monkeypatch.setattr(inputs, "free_memory", lambda: 2 * 4 * 4 * 3)
    assert len(read_tree(path).images) == 2
    monkeypatch.setattr(inputs, "free_memory", lambda: 2 * 4 * 4 * 3 - 1)
    text = r"a\.tar, with 2 images, takes .* of memory, and .* are free; unpack it and pass the folder\.$"
    refused(path, text)


def test_broken_image_of_an_archive_is_named(tmp_path):
    numbered(tmp_path / "t", ["a/0.png", "a/1.png"])
    (tmp_path / "t" / "a" / "1.png").write_bytes(b"no image")
    refused(
        archived(tmp_path / "t", tmp_path / "a.tar", ["a/0.png", "a/1.png"]),
        r"cannot decode image .*a/1\.png of .*a\.tar: ",
    )


@pytest.mark.parametrize(("name", "share"), [("a.tar", 0.3), ("a.tar.gz", 0.6), ("a.tar.xz", 0.6)])
def test_archive_cut_short_is_refused(tmp_path, name, share):
    for number in range(7):
        write_image(tmp_path / "t" / f"a/{number}.png", NOISE[number].repeat(9, axis=0))
    path = archived(tmp_path / "t", tmp_path / name, [f"a/{number}.png" for number in range(7)])
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    refused(path, r"cannot (read|decode) .*a\.tar")


@pytest.mark.parametrize("position", ["boundary", "header"])
def test_archive_that_ends_between_two_images_is_not_taken_for_a_smaller_one(tmp_path, position):
    names = ["a/0.png", "a/1.png", "a/2.png"]
    path = archived(numbered(tmp_path / "t", names), tmp_path / "a.tar", names)
    with tarfile.open(path) as archive:
        end = archive.getmembers()[1].offset + (0 if position == "boundary" else 100)
    path.write_bytes(path.read_bytes()[:end])
    refused(path, r"cannot read .*a\.tar as an archive of images: it is cut short")
    path.write_bytes(b"hello")
    refused(path, r"cannot read .*a\.tar as an archive of images")


@pytest.mark.parametrize("name", ["a.tar.gz", "a.tar.xz"])
def test_wrong_checksum_at_the_end_of_an_archive_is_noticed(tmp_path, name):
    names = ["a/0.png", "a/1.png"]
    path = archived(numbered(tmp_path / "t", names), tmp_path / name, names)
    content = bytearray(path.read_bytes())
    content[-8 if name.endswith("gz") else -12] ^= 1
    path.write_bytes(content)
    refused(path, r"cannot read .*a\.tar.* as an archive of images")


def test_links_to_folders_are_followed_but_not_in_circles(tmp_path):
    numbered(tmp_path, ["set/a/0.png", "set/b/1.png", "elsewhere/2.png"])
    (tmp_path / "set" / "c").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "set" / "a" / "up").symlink_to(tmp_path / "set")
    (tmp_path / "elsewhere" / "self").symlink_to(".")
    tree = read_tree(tmp_path / "set")
    assert (tree.classes, len(tree.images)) == (["a", "b", "c"], 3)


def test_a_folder_is_entered_once_however_many_links_lead_to_it(tmp_path):
    numbered(tmp_path, [f"{level:02}/a/{level}.png" for level in range(20)])
    for level in range(19):
        for name in "xy":  # 2**19 paths to the last
            (tmp_path / f"{level:02}" / name).symlink_to(tmp_path / f"{level + 1:02}")
    for folder in (tmp_path, tmp_path / "00"):  # from the latter, all others are reached only by links
        assert [path.name for path in image_files(folder)] == [f"{level}.png" for level in range(20)]


def test_images_belong_to_the_folder_that_has_them_or_to_the_first_link(tmp_path):
    numbered(tmp_path, ["set/b/0.png", "set/c/1.png", "elsewhere/2.png"])
    for link, folder in (("a", "b"), ("c/b", "b"), ("e", "../elsewhere"), ("d", "../elsewhere")):
        (tmp_path / "set" / link).symlink_to(tmp_path / "set" / folder)
    names = [str(path.relative_to(tmp_path / "set")) for path in image_files(tmp_path / "set")]
    assert names == ["b/0.png", "c/1.png", "d/2.png"]


def test_a_folder_that_cannot_be_read_is_named(tmp_path, monkeypatch):
    numbered(tmp_path, ["a/0.png", "b/1.png"])
    scan = os.scandir

    def denied(folder):
        if Path(folder).name == "b":
            raise PermissionError(13, "Permission denied")
        return scan(folder)

    with monkeypatch.context() as patch:
        patch.setattr(images.os, "scandir", denied)
        refused(tmp_path, r"cannot read .*/b: Permission denied\.")


def test_images_that_cannot_be_decoded_are_left_out(tmp_path):
    tree = read_tree(numbered(tmp_path, ["a/0.png", "a/1.png", "b/2.png", "c/3.png"]))
    for name in ("a/0.png", "b/2.png"):
        (tmp_path / name).write_bytes(b"no image")
    decoded, rows = images.without_bad(tree)
    assert (rows.tolist(), decoded.classes, decoded.labels.tolist()) == ([1, 3], ["a", "c"], [0, 1])
    np.testing.assert_array_equal(decoded.images.read(slice(0, 2), 4)[:, 0, 0, 0], [1, 3])
    for name in ("a/1.png", "c/3.png"):
        (tmp_path / name).unlink()
    with pytest.raises(HashbenchError, match=r"none of the 4 images can be decoded.*: cannot decode .*0\.png"):
        images.without_bad(tree)


def test_too_little_memory_is_no_fault_of_an_image(tmp_path, monkeypatch):
    tree = read_tree(numbered(tmp_path, ["a/0.png", "b/1.png"]))

    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(Image.Image, "convert", fail)
    for read in (lambda: images.without_bad(tree), lambda: tree.images.read(slice(0, 1), 4)):
        with pytest.raises(MemoryError):
            read()
