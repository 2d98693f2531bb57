"""The networks for images: listed without PyTorch, built from `architectures` with it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hashbench.errors import unknown_name

if TYPE_CHECKING:
    from hashbench.sources.features.architectures import Network

FIRST_LAYER = "conv1"  # of all of them
_ENLARGED = 4  # by how much small images are enlarged for networks


@dataclass(frozen=True)
class Backbone:
    """Facts about a network that do not need its weights."""

    architecture: str  # name of a `Network` in `architectures`
    n_features: int
    weights_url: str  # of the official weights, trained on ImageNet; empty if there are none
    sha256: str | None  # of that file; its first 8 digits if its publisher gives no more; None if nothing
    layers: tuple[str, ...]  # from the images to the features
    input_size: int = 224  # width and height of the images it is meant for, in pixels
    any_size: bool = False  # whether it takes other sizes too: no layer before the features needs a certain one
    centres: bool = False  # whether it takes pixels from 0 to 255, and subtracts an average image itself
    end_to_end: bool = True  # whether learned methods train it together with their head

    @property
    def is_pretrained(self) -> bool:
        """Whether there are weights to read; if not, training starts from random ones."""
        return bool(self.weights_url)

    def build(self) -> "Network":
        """Build the untrained network."""
        from hashbench.sources.features import architectures

        network: Network = getattr(architectures, self.architecture)()
        return network

    def usual_size(self, native_size: int | None) -> int:
        """Return the default size for images of ``native_size``, None if their sizes differ.

        It is ``input_size``, or four times the size of small images if the network takes that: 128 for CIFAR's 32.
        """
        return min(self.input_size, _ENLARGED * native_size) if self.any_size and native_size else self.input_size


def _torchvision(
    network: str, n_features: int, file: str, sha256: str, layers: tuple[str, ...], **facts: Any
) -> Backbone:
    """Describe a network whose official weights are a file of torchvision, with 8 digits of its SHA-256 in the name."""
    url = f"https://download.pytorch.org/models/{file}-{sha256[:8]}.pth"
    return Backbone(network, n_features, url, sha256, layers, **facts)


_TOWER = (*(f"conv{number}" for number in range(1, 6)), "fc6", "fc7")
_SQUEEZENET = (FIRST_LAYER, *(f"fire{number}" for number in range(2, 10)))
_RESNET = (FIRST_LAYER, *(f"layer{number}" for number in range(1, 5)))
_DSH = (FIRST_LAYER, "conv2", "conv3", "fc4")
_VGGF = "https://www.vlfeat.org/matconvnet/models/imagenet-vgg-f.mat"
_OF_ALEXNET = "7be5be791159472b1fbf3c69796f7cb30dca7ad8466c2df70058c37116cdee02"
_OF_VGG16 = "397923af8e79cdbb6a7127f12361acd7a2f83e06b05044ddf496e83de57a5bf0"
_OF_RESNET18 = "f37072fd47e89c5e827621c5baffa7500819f7896bbacec160b1a16c560e07ec"
_OF_RESNET50 = "0676ba61b6795bbe1773cffd859882e5e297624d384b6993f7c9e683e722fb8a"

BACKBONES: dict[str, Backbone] = {
    "squeezenet": _torchvision("SqueezeNet", 512, "squeezenet1_0", "b66bff10", _SQUEEZENET, any_size=True),
    "alexnet": _torchvision("AlexNet", 4096, "alexnet-owt", _OF_ALEXNET, _TOWER),
    "vgg-f": Backbone("VGGF", 4096, _VGGF, None, _TOWER, centres=True),
    "vgg16": _torchvision("VGG16", 4096, "vgg16", _OF_VGG16, _TOWER),
    "resnet18": _torchvision("ResNet18", 512, "resnet18", _OF_RESNET18, _RESNET, any_size=True),
    "resnet50": _torchvision("ResNet50", 2048, "resnet50", _OF_RESNET50, _RESNET, any_size=True, end_to_end=False),
    "dsh-net": Backbone("DSHNet", 500, "", None, _DSH, input_size=32, centres=True),
}
TRAINABLE = tuple(name for name, backbone in BACKBONES.items() if backbone.end_to_end)


def get_backbone(name: str) -> Backbone:
    """Return a backbone by its name, such as ``resnet18``."""
    if name not in BACKBONES:
        raise unknown_name("backbone", name, BACKBONES)
    return BACKBONES[name]
