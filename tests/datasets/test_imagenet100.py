import numpy as np
import pytest
from PIL import Image

from hashbench import testing
from hashbench.adapter import Options
from hashbench.datasets.imagenet100 import ImageNet100
from hashbench.errors import HashbenchError

WNIDS = ["n02256656", "n01440764", "n03000684", "n02110185"]
PREFIX = "/home/somebody/dataset/imagenet"
LAYOUTS = {
    "flat": ("image", "val_image"),
    "ilsvrc": ("ILSVRC/Data/CLS-LOC/train/{wnid}", "ILSVRC/Data/CLS-LOC/val"),
    "sorted": ("train/{wnid}", "val/{wnid}"),
}
DATABASE = [(f"{wnid}_{7 * number + 3}.JPEG", label) for number in range(6) for label, wnid in enumerate(WNIDS)]
TRAIN = [DATABASE[row] for row in (13, 2, 7, 0, 5, 11, 4, 14)]
TEST = [(f"ILSVRC2012_val_000000{number:02}.JPEG", number % 4) for number in (7, 21, 30, 33, 44, 45)]


class Small(ImageNet100):
    n_train, n_database, n_test, n_classes = 8, 24, 6, 4


def red(number):
    """Each image is of one colour, another for each."""
    return 8 * number


def write_list(path, items, folder):
    lines = [f"{PREFIX}/{folder}/{name} {' '.join(str(int(k == label)) for k in range(4))}\n" for name, label in items]
    path.write_text("".join(lines))


def write_source(folder, layout="flat"):
    write_list(folder / "train.txt", TRAIN, "image")
    write_list(folder / "database.txt", DATABASE, "image")
    write_list(folder / "test.txt", TEST, "val_image")
    for number, (name, label) in enumerate([*DATABASE, *TEST]):
        place = folder / LAYOUTS[layout][number >= len(DATABASE)].format(wnid=WNIDS[label])
        place.mkdir(parents=True, exist_ok=True)
        image = Image.new("RGB", (9 + number % 4, 10), (red(number), 0, 0))
        image.save(place / name, quality=100, subsampling=0)
    return folder


@pytest.fixture
def source(tmp_path):
    return write_source(tmp_path)


def prepared(source):
    return Small(Options(source=source, features="images", image_size=8)).prepare()


def refused(source, words):
    """Check that a source is refused; return the error."""
    with pytest.raises(HashbenchError, match=words) as caught:
        prepared(source)
    return str(caught.value)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_images_are_found_by_name_in_the_order_of_the_lists(tmp_path, layout):
    dataset = prepared(write_source(tmp_path, layout))
    assert dataset.images.shape == (30, 8, 8, 3)
    np.testing.assert_allclose(dataset.images[:, 4, 4, 0], [red(number) for number in range(30)], atol=2)
    np.testing.assert_array_equal(dataset.labels, [label for _, label in [*DATABASE, *TEST]])


def test_roles_are_those_of_the_lists(source):
    dataset = prepared(source)
    names = np.array([name for name, _ in [*DATABASE, *TEST]])
    assert names[dataset.query].tolist() == [name for name, _ in TEST]
    assert names[dataset.database].tolist() == [name for name, _ in DATABASE]
    assert sorted(names[dataset.train]) == sorted(name for name, _ in TRAIN)
    assert (np.diff(dataset.train) > 0).all()
    assert dataset.rule == "same-label"


def test_paths_of_any_system_and_with_blanks_are_understood(source):
    expected = prepared(source).fingerprint
    text = (source / "database.txt").read_text()
    text = text.replace(PREFIX, "D:\\my images\\imagenet").replace("/image/", "\\image\\")
    (source / "database.txt").write_text(text.replace("\n", "\r\n") + "\r\n", newline="")
    assert prepared(source).fingerprint == expected


def test_missing_images_are_counted_and_named(source):
    (source / "image" / DATABASE[3][0]).unlink()
    (source / "val_image" / TEST[2][0]).unlink()
    names = ", ".join(sorted([DATABASE[3][0], TEST[2][0]]))
    refused(source, f"2 of the 30 images of .* missing below {source}: {names}[.] Put")


@pytest.mark.parametrize("name", ["train.txt", "database.txt", "test.txt"])
def test_lines_without_a_one_hot_class_are_refused(source, name):
    first, second, *others = (source / name).read_text().splitlines()
    path, digits = second.partition(" ")[::2]
    for bad in (f"{digits[:-1]}2", digits.replace("1", "0"), digits.replace("0", "1"), digits[:-2], ""):
        (source / name).write_text("\n".join([first, f"{path} {bad}", *others]))
        refused(source, f"{name} has a line that begins .*expected a path and 4 digits")


@pytest.mark.parametrize("name", ["train.txt", "database.txt", "test.txt"])
def test_lists_of_other_lengths_are_refused(source, name):
    lines = (source / name).read_text().splitlines()
    (source / name).write_text("\n".join(lines[:-1]))
    n = len(lines)
    refused(source, f"{name} has {n - 1} lines with {n - 1} images, expected {n};")
    (source / name).write_text("\n".join([*lines[:-1], lines[0]]))
    refused(source, f"{name} has {n} lines with {n - 1} images")


def test_lists_that_contradict_each_other_are_refused(source):
    write_list(source / "train.txt", [*TRAIN[:-1], ("n02256656_99999.JPEG", 0)], "image")
    refused(source, "1 training images outside the database, first n02256656_99999.JPEG")
    name, label = TRAIN[0]
    write_list(source / "train.txt", [(name, (label + 1) % 4), *TRAIN[1:]], "image")
    refused(source, f"1 training images of another class, first {name}")
    write_list(source / "train.txt", TRAIN, "image")
    write_list(source / "test.txt", [*TEST[:-1], DATABASE[6]], "val_image")
    refused(source, f"1 queries inside the database, first {DATABASE[6][0]}")


@pytest.mark.parametrize("check", testing.DATASET_CHECKS, ids=lambda check: check.__name__)
def test_adapter_keeps_the_contract(source, check):
    check(Small(Options(source=source, features="pixels", image_size=8)))
