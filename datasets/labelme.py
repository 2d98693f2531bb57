"""22,019 photos of LabelMe as GIST features, without labels: near photos are relevant."""

from hashbench.dataset import Dataset
from hashbench.datasets._published import PublishedDataset
from hashbench.datasets._unlabelled import N_QUERIES, N_TRAIN, PROTOCOL, describe_unlabelled
from hashbench.errors import HashbenchError
from hashbench.sources.array_files import read_features
from hashbench.sources.download import Needed, demand

_URL = "http://www.cs.toronto.edu/~norouzi/research/mlh/data/LabelMe_gist.mat"
_NOTE = (
    "no checksum is published; it is also in http://cs.nyu.edu/~fergus/research/tfw_cvpr08_code.zip; "
    "under another name or in another place give it as --source"
)


class LabelMe(PublishedDataset):
    """GIST features of the 22K LabelMe set; other variables of the file are not read."""

    name = "labelme"
    summary = "22,019 photos as GIST, no labels; 2,000 queries, 20,019 database, 5,000 of these for training"
    features = ("gist",)
    takes = ("source",)
    needs = "LabelMe_gist.mat"
    protocol = (
        "that of TALR, whose 20,000 database items are 20,019 here, since no item is left out: "
        f"{PROTOCOL}; features as they are in the file, neither centred nor scaled"
    )
    citation = (
        "B. C. Russell, A. Torralba, K. P. Murphy, W. T. Freeman, LabelMe: A Database and Web-Based Tool for Image "
        "Annotation, IJCV 2008; A. Torralba, R. Fergus, Y. Weiss, Small Codes and Large Image Databases for "
        "Recognition, CVPR 2008"
    )
    shape = (22_019, 512)
    n_queries, n_train = N_QUERIES, N_TRAIN

    def prepare(self) -> Dataset:
        """Read the features, draw queries and training items, take thresholds from the training items."""
        (path,) = demand(self.folder, [Needed("LabelMe_gist.mat", _URL, note=_NOTE)], f"dataset {self.name!r}")
        features = read_features(f"{path}:gist")
        if features.shape != self.shape:
            raise HashbenchError(
                f"gist of {path} has shape {features.shape}, that of LabelMe has {self.shape}; fetch {_URL}."
            )
        about = {"source": path.name, "features": "GIST, 512-d, computed by the authors"}
        return self.dataset(
            about=about, features=features, **describe_unlabelled(features, self.n_queries, self.n_train)
        )
