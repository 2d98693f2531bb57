import pytest

from hashbench.errors import HashbenchError
from hashbench.sources.features.backbones import BACKBONES, TRAINABLE, get_backbone
from hashbench.sources.features.extraction import KINDS


def test_pretrained_backbones_are_kinds_of_features_and_most_are_trained_end_to_end():
    assert list(TRAINABLE) == ["squeezenet", "alexnet", "vgg-f", "vgg16", "resnet18", "dsh-net"]
    assert list(KINDS) == ["pixels", "gist", *TRAINABLE[:-1], "resnet50", "hf:MODEL", "images"]
    assert all(BACKBONES[name].n_features >= 512 for name in KINDS[2:-2])


def test_unknown_backbone_suggests_a_near_name():
    with pytest.raises(HashbenchError, match=r"unknown backbone 'squeezenet1_0'. Did you mean 'squeezenet'\?"):
        get_backbone("squeezenet1_0")


def test_names_of_official_files_end_in_their_digest():
    for name, backbone in BACKBONES.items():
        if not backbone.is_pretrained:
            assert name == "dsh-net"
            continue
        assert backbone.weights_url.startswith("https://")
        if name != "vgg-f":
            assert backbone.weights_url.endswith(f"-{backbone.sha256[:8]}.pth")
            assert len(backbone.sha256) == (8 if name == "squeezenet" else 64)
