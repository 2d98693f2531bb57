"""Fitted methods as ONNX graphs, written by hand: from items ``X`` (n, n_features) to ``codes`` (n, n_bits), bool.

PyTorch is not needed. A graph computes in the order of the method's own ``_project``, in float64 or in float32.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from hashbench._typing import AnyArray
from hashbench.errors import HashbenchError
from hashbench.learning.base import HIDDEN_MEAN, LearnedHash
from hashbench.method import HashMethod

_OPSETS = {"": 17, "ai.onnx.ml": 3}
_ON_THE_SPHERE = 1e-12  # what rounding may do to a squared distance, as a share of it
_IR_VERSION = 8  # that of these sets of operators, so that old runtimes read it too


class Graph:
    """An ONNX graph that grows by one operation at a time; values are named by strings."""

    def __init__(self, precision: str) -> None:
        self.precision = precision
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, value: Any) -> str:
        """Add an array to the graph, real numbers at its precision; return its name."""
        array = np.asarray(value)
        array = array.astype(self.precision) if array.dtype.kind == "f" else array
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), f"c{len(self.constants)}"))
        return str(self.constants[-1].name)

    def __call__(self, operator: str, *inputs: Any, domain: str = "", **attributes: Any) -> str:
        """Apply an operator to values, by name, and to arrays and numbers; return the name of its output."""
        return self.several(1, operator, *inputs, domain=domain, **attributes)[0]

    def several(self, n_outputs: int, operator: str, *inputs: Any, domain: str = "", **attributes: Any) -> list[str]:
        """Apply an operator with several outputs likewise; return their names."""
        names = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        outputs = [f"v{len(self.nodes)}_{number}" for number in range(n_outputs)]
        self.nodes.append(helper.make_node(operator, names, outputs, domain=domain, **attributes))
        return outputs

    def unit_rows(self, values: str, norm: float = 1.0) -> str:
        """Scale rows to a length; those of length 0 stay as they are."""
        norms = self("Sqrt", self("ReduceSum", self("Mul", values, values), np.array([1]), keepdims=1))
        divisor = self("Where", self("Greater", norms, 0.0), norms, 1.0)
        unit = self("Div", values, divisor)
        return unit if norm == 1.0 else self("Mul", unit, float(norm))


def to_onnx(method: HashMethod, precision: str, about: Mapping[str, str]) -> bytes:
    """Return a fitted method as an ONNX model in float64 or float32, with ``about`` as its metadata.

    Raises HashbenchError for a method without a formula here.
    """
    graph = Graph(precision)
    values = _values(method, graph)
    graph.nodes.append(helper.make_node("Greater", [values, graph.constant(np.zeros(()))], ["codes"]))
    kind = {"float64": TensorProto.DOUBLE, "float32": TensorProto.FLOAT}[precision]
    inputs = [helper.make_tensor_value_info("X", kind, ["n", int(method.n_features_in_)])]
    outputs = [helper.make_tensor_value_info("codes", TensorProto.BOOL, ["n", method.n_bits])]
    content = helper.make_graph(graph.nodes, "hashbench", inputs, outputs, graph.constants)
    opsets = [helper.make_opsetid(domain, version) for domain, version in _OPSETS.items()]
    model = helper.make_model(content, opset_imports=opsets, ir_version=_IR_VERSION, producer_name="hashbench")
    helper.set_model_props(model, dict(about))
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def _values(method: HashMethod, graph: Graph) -> str:
    """Add a method's projection to a graph."""
    planes = method.hyperplanes()
    if planes is not None:
        return graph("Add", graph("MatMul", graph("Sub", "X", planes.origin), planes.normals), planes.offsets)
    if isinstance(method, LearnedHash) and method.backbone is None:
        return _head(method, graph)
    formula = _FORMULAS.get(method.label)
    if formula is None:
        raise HashbenchError(
            f"{method.label}{' with a backbone' if method.input_kind == 'images' else ''} cannot be written as ONNX "
            "here. Encode with it by hashbench encode --model, and export the codes."
        )
    return formula(method, graph)


def _head(method: LearnedHash, graph: Graph) -> str:
    values = graph("Sub", "X", method.mean_)
    norm = method.norm_of_items
    if norm is not None:
        values = graph.unit_rows(values, norm)
    for position, (weights, bias) in enumerate(method.layers_):
        if position:
            values = graph("Sub", graph("Relu", values), HIDDEN_MEAN)
        values = graph("Add", graph("MatMul", values, weights), bias)
    return values


def _sh(method: Any, graph: Graph) -> str:
    along = graph("Sub", graph("MatMul", graph("Sub", "X", method.mean_), method.directions_), method.low_)
    chosen = graph("Gather", along, method.mode_direction_, axis=1)
    waves = graph("Mul", chosen, np.pi * method.mode_number_)
    return graph("Cos", graph("Div", waves, method.width_[method.mode_direction_]))


def _sklsh(method: Any, graph: Graph) -> str:
    phases = graph("Add", graph("MatMul", "X", method.projection_), method.phases_)
    return graph("Add", graph("Cos", phases), method.thresholds_)


def _sph(method: Any, graph: Graph) -> str:
    middle = method.centres_.mean(axis=0)  # from where distances lose least
    squared = _squared_distances(graph("Sub", "X", middle), method.centres_ - middle, graph)
    radii = method.squared_radii_ * (1 + _ON_THE_SPHERE)  # a training item lies on each sphere, and is inside
    return graph("Sub", radii, squared)


def _agh(method: Any, graph: Graph) -> str:
    squared = _squared_distances(graph("Sub", "X", method.origin_), method.anchors_, graph)
    n_nearest = np.array([min(method.n_nearest, len(method.anchors_))])
    nearest, order = graph.several(2, "TopK", squared, n_nearest, axis=1, largest=0, sorted=1)
    closer = graph("Sub", graph("ReduceMin", nearest, axes=[1], keepdims=1), nearest)
    near = graph("Exp", graph("Div", closer, method.squared_width_))
    shares = graph("Div", near, graph("ReduceSum", near, np.array([1]), keepdims=1))
    described = graph("ScatterElements", graph("Mul", squared, 0.0), order, shares, axis=1)
    along = graph("MatMul", described, method.weights_)
    if method.n_layers == 1:
        return along
    above, below = method.thresholds_
    sides = graph("Sub", along, above), graph("Sub", below, along)
    again = graph("Where", graph("Greater", along, 0.0), *sides)
    return graph("Gather", graph("Concat", along, again, axis=1), np.arange(method.n_bits), axis=1)


def _anchored(method: Any, graph: Graph) -> str:
    return _kernel(method.anchors_, "X", method.weights_, graph)


def _sdh(method: Any, graph: Graph) -> str:
    values = _kernel(method.anchors_, graph.unit_rows("X"), method.weights_[:-1], graph)
    return graph("Add", values, method.weights_[-1])


def _machash(method: Any, graph: Graph) -> str:
    return graph("Add", _anchored(method, graph), method.intercept_)


def _kernel(anchors: Any, items: str, weights: AnyArray, graph: Graph) -> str:
    moved = graph("Sub", items, anchors.origin)
    squared = _squared_distances(moved, anchors.items - anchors.origin, graph)
    kernel = graph("Exp", graph("Mul", squared, -float(anchors.gamma)))
    return graph("MatMul", graph("Sub", kernel, anchors.mean), weights)


def _squared_distances(items: str, points: AnyArray, graph: Graph) -> str:
    """Compute squared distances (n, n_points), as scikit-learn does: |x|^2 - 2 x.p + |p|^2, at least 0."""
    squares = graph("ReduceSum", graph("Mul", items, items), np.array([1]), keepdims=1)
    products = graph("Mul", graph("MatMul", items, points.T), -2.0)
    return graph("Relu", graph("Add", graph("Add", products, squares), (points**2).sum(axis=1)))


def _fasthash(method: Any, graph: Graph) -> str:
    """Add the trees of all bits as one ensemble; thresholds in numbers of bins become thresholds of features."""
    parts: dict[str, list[AnyArray]] = {}
    starts, n_trees = np.zeros(method.n_bits), 0
    for bit, trees in enumerate(method.trees_):
        if isinstance(trees, float):
            starts[bit] = trees
            continue
        starts[bit] = trees.start
        n_nodes = len(trees.left)
        numbers = np.arange(n_nodes)
        tree = np.searchsorted(trees.roots, numbers, side="right") - 1
        is_leaf = trees.left == numbers
        of_features = np.zeros(n_nodes)
        for node in np.flatnonzero(~is_leaf):
            edges, number = method.edges_[trees.feature[node]], int(trees.threshold[node])
            of_features[node] = edges[number] if number < len(edges) else np.finfo(graph.precision).max
        first = trees.roots[tree]
        values = {
            "nodes_treeids": tree + n_trees,
            "nodes_nodeids": numbers - first,
            "nodes_featureids": trees.feature,
            "nodes_values_as_tensor": of_features,
            "nodes_modes": np.where(is_leaf, "LEAF", "BRANCH_LEQ"),
            "nodes_truenodeids": np.where(is_leaf, 0, trees.left - first),
            "nodes_falsenodeids": np.where(is_leaf, 0, trees.right - first),
            "target_treeids": tree[is_leaf] + n_trees,
            "target_nodeids": (numbers - first)[is_leaf],
            "target_ids": np.full(is_leaf.sum(), bit),
            "target_weights_as_tensor": trees.value[is_leaf],
        }
        for name, value in values.items():
            parts.setdefault(name, []).append(value)
        n_trees += len(trees.roots)
    attributes: dict[str, Any] = {"base_values_as_tensor": numpy_helper.from_array(starts.astype(graph.precision))}
    for name, of_bits in parts.items():
        joined = np.concatenate(of_bits)
        is_real = name.endswith("_as_tensor")
        attributes[name] = numpy_helper.from_array(joined.astype(graph.precision)) if is_real else joined.tolist()
    sums = graph("TreeEnsembleRegressor", "X", domain="ai.onnx.ml", n_targets=method.n_bits, **attributes)
    return graph("Cast", sums, to=TensorProto.DOUBLE if graph.precision == "float64" else TensorProto.FLOAT)


_FORMULAS: Mapping[str, Callable[[Any, Graph], str]] = {
    "agh": _agh,
    "fasthash": _fasthash,
    "ksh": _anchored,
    "machash": _machash,
    "sdh": _sdh,
    "sh": _sh,
    "sklsh": _sklsh,
    "sph": _sph,
    "structhash": _anchored,
}
