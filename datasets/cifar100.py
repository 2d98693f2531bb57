"""CIFAR-100 with classes and superclasses."""

from hashbench.datasets._cifar import CifarAdapter, Format

_SUPERCLASSES = (
    "beaver dolphin otter seal whale",
    "aquarium_fish flatfish ray shark trout",
    "orchid poppy rose sunflower tulip",
    "bottle bowl can cup plate",
    "apple mushroom orange pear sweet_pepper",
    "clock keyboard lamp telephone television",
    "bed chair couch table wardrobe",
    "bee beetle butterfly caterpillar cockroach",
    "bear leopard lion tiger wolf",
    "bridge castle house road skyscraper",
    "cloud forest mountain plain sea",
    "camel cattle chimpanzee elephant kangaroo",
    "fox porcupine possum raccoon skunk",
    "crab lobster snail spider worm",
    "baby boy girl man woman",
    "crocodile dinosaur lizard snake turtle",
    "hamster mouse rabbit shrew squirrel",
    "maple_tree oak_tree palm_tree pine_tree willow_tree",
    "bicycle bus motorcycle pickup_truck train",
    "lawn_mower rocket streetcar tank tractor",
)


class Cifar100(CifarAdapter):
    """A hundred classes in twenty superclasses; items of the same class, or less so superclass, are relevant."""

    name = "cifar100"
    summary = "60,000 images, 100 classes in 20 superclasses; official 10,000 as queries, 50,000 as database"
    format = Format(
        name="CIFAR-100",
        train=("train",),
        test=("test",),
        keys=(b"coarse_labels", b"fine_labels"),
        n_classes=(20, 100),
        classes=tuple(sorted(" ".join(_SUPERCLASSES).split())),
        superclasses=_SUPERCLASSES,
    )
    url = "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz"
    sha256 = "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7"
    rule = "hierarchy"
    protocol = (
        "official test part as queries, official training part as database and for training; level 2 for the same "
        "class, 1 for the same superclass"
    )
