"""Hyperplanes and learned heads as ONNX graphs: from items ``X`` (n, n_features) to ``codes`` (n, n_bits), bool.

PyTorch is not needed. A graph computes in the order of the method's own ``_project``, in float64 or in float32.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from hashbench.errors import HashbenchError
from hashbench.learning.base import HIDDEN_MEAN, LearnedHash
from hashbench.method import HashMethod

_OPSET = 17
_IR_VERSION = 8  # that of this set of operators, so that old runtimes read it too


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

    def __call__(self, operator: str, *inputs: Any, **attributes: Any) -> str:
        """Apply an operator to values, by name, and to arrays and numbers; return the name of its output."""
        names = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        self.nodes.append(helper.make_node(operator, names, [f"v{len(self.nodes)}"], **attributes))
        return f"v{len(self.nodes) - 1}"


def to_onnx(method: HashMethod, precision: str, about: Mapping[str, str]) -> bytes:
    """Return a fitted method as an ONNX model in float64 or float32, with ``about`` as its metadata.

    Raises HashbenchError for a method that is neither linear nor a network on features.
    """
    graph = Graph(precision)
    values = _values(method, graph)
    graph.nodes.append(helper.make_node("Greater", [values, graph.constant(np.zeros(()))], ["codes"]))
    kind = {"float64": TensorProto.DOUBLE, "float32": TensorProto.FLOAT}[precision]
    inputs = [helper.make_tensor_value_info("X", kind, ["n", int(method.n_features_in_)])]
    outputs = [helper.make_tensor_value_info("codes", TensorProto.BOOL, ["n", method.n_bits])]
    content = helper.make_graph(graph.nodes, "hashbench", inputs, outputs, graph.constants)
    opsets = [helper.make_opsetid("", _OPSET)]
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
    backbone = " with a backbone" if method.input_kind == "images" else ""
    raise HashbenchError(
        f"{method.label}{backbone} with these parameters is neither linear nor a network on features, which onnx "
        "takes. Read its arrays from the model, an HDF5 file (docs/files.md), or encode with it (hashbench encode "
        "--model) and export the codes."
    )


def _head(method: LearnedHash, graph: Graph) -> str:
    values = graph("Sub", "X", method.mean_)
    norm = method.norm_of_items
    if norm is not None:
        values = _unit_rows(values, norm, graph)
    for position, (weights, bias) in enumerate(method.layers_):
        if position:
            values = graph("Sub", graph("Relu", values), HIDDEN_MEAN)
        values = graph("Add", graph("MatMul", values, weights), bias)
    return values


def _unit_rows(values: str, norm: float, graph: Graph) -> str:
    """Scale rows to a length; those of length 0 stay as they are."""
    norms = graph("Sqrt", graph("ReduceSum", graph("Mul", values, values), np.array([1]), keepdims=1))
    unit = graph("Div", values, graph("Where", graph("Greater", norms, 0.0), norms, 1.0))
    return unit if norm == 1.0 else graph("Mul", unit, float(norm))
