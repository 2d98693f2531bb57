"""The scoring scripts that people use, each described by where it departs from ours. A new one is an entry here.

What each does was read in its public code. Tests compare its numbers with worked examples, and with the original where
that can be installed. An entry has its name, where it is used, what was read; then where it departs.
"""

from collections.abc import Iterable
from dataclasses import replace

from hashbench.errors import unknown_name
from hashbench.reports.explain import conventions as by
from hashbench.reports.explain import orders, quantities
from hashbench.reports.explain.conventions import Evaluator

_TOOLS = "swuxyj/DeepHash-pytorch@ab14068 utils/tools.py"
_CALC_TOP_MAP = (
    f"{_TOOLS}:207-232; jiangqy/DPSH-pytorch@0423181 utils/CalcHammingRanking.py, jiangqy/ADSH-AAAI2018@2e95574 "
    "ADSH_pytorch/utils/calc_hr.py, liyunqianggyn/Deep-Unsupervised-Image-Hashing@1cd671a ImageHashing/cal_map_*.py, "
    "ssppp/GreedyHash@e5089b2 cal_map.py:41-100, qiuzx2/CIBHash@e976ace utils/evaluation.py:41-69"
)
_HASHNET = "thuml/HashNet@85387b8 pytorch/src/test.py:31-53"
_CSQ = "yuanli2333/Hadamard-Matrix-for-hashing@55cab00 test.py:10-50"
_THULAB = "thulab/DeepHash@9907613 DeepHash/evaluation/__init__.py"
_FIRE = "CISiPLab/cisip-FIRe@e8826c4 functions/metrics.py:18-204"
_DEEPHASH = "flyingpot/pytorch_deephash@fbd94a2 evaluate.py:59-98"
_BASELINES = "facebookresearch/supervised-hashing-baselines@c18efcc main.py:20-32,75-101"
_BIHALF = "liyunqianggyn/Deep-Unsupervised-Image-Hashing@1cd671a ImageHashing/cal_map_mult.py:112-222"
_DEEPBIT = "kevinlin311tw/cvpr16-deepbit@c60fb32 analysis/precision.m:1-61"
_SDH = "bd622/DiscretHashing@bfaafc1 cat_apcal.m:1-31, evaluate_macro.m:1-35"
_SELVE = "willard-yuan/hashing-baseline-for-image-retrieval@8228378 Method-SELVE/apcal.m, phmap.m"
_PERF10 = "BMC-SDNU/Hashing-Retrieval@715ba44 perf_metric4Label.m:10-41"
_YUAN = "willard-yuan/hashing-baseline-for-image-retrieval@8228378 utils"
_AREA = (  # no byte is lost: its index is y + 1 with y uint8, which ends at 255, and its sums are uint16
    f"{_YUAN}/recall_precision.m:1-42, hammingDist.m:25-46 (a byte that differs in all bits counts 7; none is lost), "
    "compactbit.m:9"
)
_TALR = "kunhe/TALR@9a93296 +eval"
_MIHASH = "fcakir/mihash@e6ba59e evaluate.m:16-84, vlfeat@1b9075f vl_pr"
_SKLEARN = "scikit-learn 1.9"
_TORCHMETRICS = "torchmetrics 1.9"
_NDCG = f"{_SKLEARN}; {_TORCHMETRICS}"
TREC = "usnistgov/trec_eval@f425365 (10.0-rc3) form_res_rels.c:266-275; pytrec_eval-terrier 0.5.11; ir_measures 0.4.3"
RANX = "ranx 0.3.21"
_MTEB = "mteb 2.26.24 models/compression_wrappers/compression_wrapper.py:189-190, _evaluators/retrieval_metrics.py"
_MTEB_COSINE = "mteb, CompressionWrapper binary, a model with cosine"
_MTEB_DOT = "mteb, CompressionWrapper binary, a model with dot"

_END = "precision at the end of each tie"
_ABOVE_ZERO = "items of score 0 or less count irrelevant"
_AMONG_HITS = "divided by the queries with a hit"
_OF_PAIRS = "pairs of all queries together"

# fmt: off
EVALUATORS = (
    Evaluator("calc-top-map", "CalcTopMap in DeepHash-pytorch; DPSH, ADSH, BiHalf, GreedyHash, CIBHash", _CALC_TOP_MAP,
              order=orders.numpy_scalar, loses_last=True),
    Evaluator("calc-map", "DeepHash-pytorch and others, the whole list",
              "jiangqy/DPSH-pytorch@0423181 utils/CalcHammingRanking.py:8-62",
              order=orders.numpy_scalar, cuts="none"),
    Evaluator("hashnet", "thuml/HashNet, PyTorch", _HASHNET,
              order=orders.numpy_scalar, mean=by.leave_out_without_hits, cuts="below"),
    Evaluator("hashnet-caffe", "thuml/HashNet, Caffe",
              "thuml/HashNet@85387b8 caffe/models/predict/*/predict_parallel.py:20-46",
              order=orders.numpy_scalar, mean=by.leave_out, cuts="below"),
    Evaluator("csq", "yuanli2333/Hadamard-Matrix-for-hashing", _CSQ,
              order=orders.numpy_scalar, mean=by.count_zero_of_labelled, cuts="below"),
    Evaluator("thulab", "thulab/DeepHash, after the sign: DHN, DCH, DTQ", f"{_THULAB}:8-23,76-81",
              order=orders.numpy_partition, mean=by.leave_out_without_hits, cuts="below"),
    Evaluator("orthohash", "kamwoh/orthohash, kamwoh/DPN", "kamwoh/orthohash@94c4a03 functions/hashing.py:55-129",
              order=orders.torch_topk, cuts="below", least_cut=2),
    Evaluator("fire", "CISiPLab/cisip-FIRe", _FIRE,
              order=orders.torch_topk, cuts="below", least_cut=2, shares_cut=True),
    Evaluator("fire-old", "CISiPLab/cisip-FIRe, old_eval", _FIRE,
              order=orders.torch_topk, cuts="below", least_cut=2, shares_cut=True, mean=by.leave_out_without_hits),
    Evaluator("treezzz", "TreezzZ's DPSH, ADSH and DSDH in PyTorch",
              "TreezzZ/DPSH_PyTorch@bb6ac2e, ADSH_PyTorch@50df03f, DSDH_PyTorch@c60b7ae utils/evaluate.py:4-54",
              order=orders.libstdcxx, loses_last=True),
    Evaluator("calc-map-k", "aassxun/DSH_Analysis", "aassxun/DSH_Analysis@44271bc utils/fish_tools.py:58-83",
              order=orders.libstdcxx, own="the cut counts hits, not items", of_ranks=quantities.of_first_hits),
    Evaluator("pytorch-deephash", "flyingpot/pytorch_deephash", _DEEPHASH,
              order=orders.numpy_scalar, mean=by.not_a_number, divisor="relevant", cuts="none"),
    Evaluator("ratio-baseline", "facebookresearch baselines, faiss IndexLSH", _BASELINES, cuts="none"),
    Evaluator("ratio-baseline-flat", "facebookresearch baselines, faiss IndexFlatIP", _BASELINES,
              order=orders.descending, cuts="none"),
    Evaluator("faiss-cumsum", "faiss IndexBinaryFlat, then the precision at each hit", "faiss-cpu 1.15", cuts="below"),
    Evaluator("callmap", "ADSH in MATLAB: callMap, calculateTopMap",
              "jiangqy/ADSH-AAAI2018@2e95574 ADSH_matlab/utils/callMap.m:1-22, calculateTopMap.m:1-32",
              distance=by.bytes_of_seven, cuts="below"),
    Evaluator("dtsh", "Minione/DTSH, MATLAB", "Minione/DTSH@4be0707 calcMAP.m:2-32", mean=by.leave_out, cuts="none"),
    Evaluator("sdh", "SDH and SELVE, MATLAB", f"{_SDH}; {_SELVE}", distance=by.bytes_of_seven, cuts="none"),
    Evaluator("dsh", "DSH in Caffe, MATLAB",
              "lhmRyan/deep-supervised-hashing-DSH@631901f CIFAR-10/compute_map.m:1-28, test_map.m",
              mean=by.not_a_number, cuts="none"),
    Evaluator("deepbit", "kevinlin311tw/cvpr16-deepbit, MATLAB", _DEEPBIT),
    Evaluator("perf10", "24 cross-modal packages in MATLAB", _PERF10,
              distance=by.bytes_of_seven, mean=by.divide_by_ten_more, cuts="none"),
    Evaluator("perf", "5 cross-modal packages in MATLAB", _PERF10,
              distance=by.bytes_of_seven, mean=by.leave_out, cuts="none"),
    Evaluator("area-rp", "willard-yuan's hashing baselines, printed as mAP",
              f"{_AREA}, area_RP.m:1-26", order=None, distance=by.bytes_of_seven, cuts="none",
              own="area under precision and recall of all pairs", of_counts=quantities.area),
    Evaluator("talr-ap", "kunhe/TALR and deep-mihash, MATLAB",
              f"{_TALR}/AP.m:1-67; fcakir/deep-mihash@b678942 tester/evaluate_AP.m:28-78",
              own="the hit at rank 1 counts nothing", of_ranks=quantities.without_first),
    Evaluator("talr-tieap", "kunhe/TALR, MATLAB: exact", f"{_TALR}/tieAP.m",
              order=None, mean=by.forget_last_ones, cuts="none"),
    Evaluator("mihash", "fcakir/mihash, MATLAB: mAP", _MIHASH, mean=by.leave_out, distance=by.of_int8, cuts="none"),
    Evaluator("mihash-k", "fcakir/mihash, MATLAB: mAP_k", _MIHASH,
              mean=by.leave_out_without_hits, distance=by.of_int8, cuts="only"),
    Evaluator("sklearn-ap", "sklearn average_precision_score", _SKLEARN,
              order=None, cuts="none", own=_END, of_counts=quantities.at_end_of_ties),
    Evaluator("sklearn-lrap", "sklearn label_ranking_average_precision_score", _SKLEARN,
              order=None, cuts="none", mean=by.count_one, own=_END, of_counts=quantities.at_end_of_ties),
    Evaluator("torchmetrics-map", "torchmetrics retrieval_average_precision, 1 / (1 + d)", _TORCHMETRICS,
              order=orders.torch_topk),
    Evaluator("torchmetrics-map-less-d", "torchmetrics, of -d", _TORCHMETRICS,
              order=None, own=_ABOVE_ZERO, of_counts=quantities.none_relevant),
    Evaluator("torchmetrics-map-bits-less-d", "torchmetrics, of n_bits - d", _TORCHMETRICS,
              order=orders.torch_topk, own=_ABOVE_ZERO, of_ranks=quantities.of_scores_above_zero),
    Evaluator("retrieval-map", "torchmetrics RetrievalMAP, 1 / (1 + d), all queries at once", _TORCHMETRICS,
              order=orders.torch_topk, item_order=orders.by_ids),
    Evaluator("retrieval-map-bits-less-d", "torchmetrics RetrievalMAP, of n_bits - d", _TORCHMETRICS,
              order=orders.torch_topk, item_order=orders.by_ids,
              own=_ABOVE_ZERO, of_ranks=quantities.of_scores_above_zero),
    Evaluator("trec_eval", "trec_eval, pytrec_eval, ir_measures; names in the order of the database", TREC,
              order=orders.descending, divisor="relevant"),
    Evaluator("trec_eval-unjudged", "the same, with judgements of relevant documents only", TREC,
              order=orders.descending, mean=by.leave_out, divisor="relevant"),
    Evaluator("mteb-binary", _MTEB_COSINE, _MTEB, order=orders.descending, mean=by.leave_out,
              distance=by.cosine_of_bits, divisor="relevant", cuts="only"),
    Evaluator("mteb-binary-dot", _MTEB_DOT, _MTEB, order=orders.descending, mean=by.leave_out,
              distance=by.dot_of_bits, divisor="relevant", cuts="only"),
    Evaluator("ranx-here", "ranx of a dict, by this machine's numba", RANX,
              order=orders.numba_reversed, divisor="relevant"),
    Evaluator("ranx-run-here", "ranx of a Run, by this machine's numba", RANX,
              order=orders.numba_here, divisor="relevant"),

    Evaluator("talr-ndcg", "kunhe/TALR, MATLAB", f"{_TALR}/NDCG.m", "NDCG", mean=by.count_one),
    Evaluator("talr-tiendcg", "kunhe/TALR, MATLAB: exact", f"{_TALR}/tieNDCG.m", "NDCG", None, by.count_one,
              cuts="none", own="gains end at 126", of_counts=quantities.ndcg_of_int8),
    Evaluator("sklearn-ndcg", "sklearn ndcg_score, torchmetrics, of 2^level - 1: exact", _NDCG, "NDCG", None),
    Evaluator("ranx-burges-here", "ranx ndcg_burges of a dict, by this machine's numba", RANX, "NDCG",
              orders.numba_reversed),
    Evaluator("ranx-run-burges-here", "ranx ndcg_burges of a Run, by this machine's numba", RANX, "NDCG",
              orders.numba_here),
    Evaluator("sklearn-ndcg-linear", "sklearn ndcg_score, torchmetrics, of levels: exact", _NDCG, "NDCG:trec", None),
    Evaluator("trec_eval-ndcg", "trec_eval, pytrec_eval: ndcg, ndcg_cut", TREC, "NDCG:trec", orders.descending),
    Evaluator("mteb-binary-ndcg", _MTEB_COSINE, _MTEB, "NDCG:trec", orders.descending, by.leave_out,
              distance=by.cosine_of_bits, cuts="only"),
    Evaluator("mteb-binary-dot-ndcg", _MTEB_DOT, _MTEB, "NDCG:trec", orders.descending, by.leave_out,
              distance=by.dot_of_bits, cuts="only"),
    Evaluator("ranx-ndcg-here", "ranx ndcg of a dict, by this machine's numba", RANX, "NDCG:trec",
              orders.numba_reversed),
    Evaluator("ranx-run-ndcg-here", "ranx ndcg of a Run, by this machine's numba", RANX, "NDCG:trec",
              orders.numba_here),

    Evaluator("calc-top-map-p", "DeepHash-pytorch, curves, topk the whole list", f"{_TOOLS}:236-275", "P@k",
              orders.numpy_scalar, by.leave_out, cuts="below"),
    Evaluator("calc-top-map-p-topk", "DeepHash-pytorch, curves at topk itself", f"{_TOOLS}:236-275", "P@k",
              orders.numpy_scalar, by.leave_out_without_hits, cuts="below"),
    # its curves of precision and recall end at rank 10,000 (cal_map_mult.py:157-158); any cut is given here
    Evaluator("bihalf-p", "BiHalf, ImageHashing", _BIHALF, "P@k", orders.numpy_scalar, cuts="below"),
    Evaluator("mihash-prec-k", "fcakir/mihash, MATLAB", _MIHASH, "P@k", distance=by.of_int8, cuts="below"),
    Evaluator("rp5", "willard-yuan's hashing baselines, MATLAB", f"{_YUAN}/recall_precision5.m:17-31", "P@k",
              distance=by.bytes_of_seven),
    Evaluator("deepbit-p", "kevinlin311tw/cvpr16-deepbit, MATLAB", _DEEPBIT, "P@k"),
    Evaluator("ksh", "KSH, MATLAB",
              "ColumbiaDVMM/Supervised-Hashing-with-Kernels@b0acf3b KSH_demo.m:106-119", "P@k", cuts="below"),
    Evaluator("pytorch-deephash-p", "flyingpot/pytorch_deephash", _DEEPHASH, "P@k", orders.numpy_scalar,
              cuts="below"),
    Evaluator("fire-p", "CISiPLab/cisip-FIRe", _FIRE, "P@k", orders.torch_topk,
              least_cut=2, shares_cut=True, cuts="below"),
    # beyond the database it divides by k, and ours by what there is
    Evaluator("trec_eval-p", "trec_eval, pytrec_eval", TREC, "P@k", orders.descending, cuts="below"),
    Evaluator("mteb-binary-p", _MTEB_COSINE, _MTEB, "P@k", orders.descending, by.leave_out,
              distance=by.cosine_of_bits, cuts="below"),
    Evaluator("mteb-binary-dot-p", _MTEB_DOT, _MTEB, "P@k", orders.descending, by.leave_out,
              distance=by.dot_of_bits, cuts="below"),

    Evaluator("calc-top-map-r", "DeepHash-pytorch, curves, topk the whole list", f"{_TOOLS}:236-275", "R@k",
              orders.numpy_scalar, by.leave_out, cuts="below"),
    Evaluator("calc-top-map-r-topk", "DeepHash-pytorch, curves at topk itself", f"{_TOOLS}:236-275", "R@k",
              orders.numpy_scalar, by.leave_out_without_hits, cuts="below"),
    Evaluator("bihalf-r", "BiHalf, ImageHashing", _BIHALF, "R@k", orders.numpy_scalar, by.weighted, cuts="below"),
    Evaluator("csq-r", "yuanli2333/Hadamard-Matrix-for-hashing", _CSQ, "R@k", orders.numpy_scalar,
              by.not_a_number_of_labelled, cuts="below"),
    Evaluator("rp5-r", "willard-yuan's hashing baselines, MATLAB", f"{_YUAN}/recall_precision5.m:17-31", "R@k",
              mean=by.weighted, distance=by.bytes_of_seven),
    Evaluator("trec_eval-r", "trec_eval, pytrec_eval", TREC, "R@k", orders.descending),
    Evaluator("mteb-binary-r", _MTEB_COSINE, _MTEB, "R@k", orders.descending, by.leave_out,
              distance=by.cosine_of_bits, cuts="below"),
    Evaluator("mteb-binary-dot-r", _MTEB_DOT, _MTEB, "R@k", orders.descending, by.leave_out,
              distance=by.dot_of_bits, cuts="below"),

    Evaluator("fire-hit", "CISiPLab/cisip-FIRe, printed as recall", _FIRE, "Hit@k", orders.torch_topk,
              least_cut=2, shares_cut=True, cuts="below"),

    Evaluator("sdh-r2", "SDH, MATLAB, at radius 2", _SDH, "P@r", None, distance=by.bytes_of_seven),
    Evaluator("mihash-prec-n", "fcakir/mihash, MATLAB", _MIHASH, "P@r", None, distance=by.radii_of_int8),
    Evaluator("thulab-r2", "thulab/DeepHash, at radius 2, and at all", f"{_THULAB}:88-189", "P@r", None),
    Evaluator("thulab-all", "thulab/DeepHash, at all radii, printed as mAP", f"{_THULAB}:142-189", "P@r",
              orders.numpy_scalar, own="AP of the items inside", of_ranks=quantities.inside),
    Evaluator("pytorch-deephash-r2", "flyingpot/pytorch_deephash, at radius 2", _DEEPHASH, "P@r", None,
              own="nothing inside: all items; all inside: NaN", of_counts=quantities.precision_or_share),
    Evaluator("bihalf-pr", "BiHalf, ImageHashing", _BIHALF, "P@r", None,
              own=_AMONG_HITS, of_counts=quantities.among_hits),
    Evaluator("area-rp-p", "willard-yuan's hashing baselines, MATLAB", _AREA, "P@r", None,
              distance=by.bytes_of_seven, own=_OF_PAIRS, of_counts=quantities.precision_of_pairs),
    Evaluator("bihalf-pairs-p", "BiHalf, ImageHashing, all queries together", _BIHALF, "P@r", None,
              own=_OF_PAIRS, of_counts=quantities.precision_of_pairs),

    Evaluator("sdh-recall", "SDH, MATLAB, at radius 2", _SDH, "R@r", None, distance=by.bytes_of_seven),
    Evaluator("thulab-recall", "thulab/DeepHash, at radius 2, and at all", f"{_THULAB}:88-189", "R@r", None,
              own="not a number where nothing is relevant", of_counts=quantities.recall_or_nothing),
    Evaluator("bihalf-recall", "BiHalf, ImageHashing", _BIHALF, "R@r", None,
              own=_AMONG_HITS, of_counts=quantities.recall_among_hits),
    Evaluator("area-rp-r", "willard-yuan's hashing baselines, MATLAB", _AREA, "R@r", None,
              distance=by.bytes_of_seven, own=_OF_PAIRS, of_counts=quantities.recall_of_pairs),
    Evaluator("bihalf-pairs-r", "BiHalf, ImageHashing, all queries together", _BIHALF, "R@r", None,
              own=_OF_PAIRS, of_counts=quantities.recall_of_pairs),
)
# fmt: on


def twins_of(scripts: Iterable[Evaluator]) -> list[Evaluator]:
    """Return the scripts among these that sort by NumPy, as they run on this machine, each as NAME-here."""
    return [
        replace(
            script,
            name=f"{script.name}-here",
            used_by=f"{script.name}, by this machine's NumPy",
            order=orders.BY_THIS_NUMPY[script.order],
            twin_of=script.name,
        )
        for script in scripts
        if script.order in orders.BY_THIS_NUMPY
    ]


def named(name: str) -> Evaluator:
    """Return a script by its name."""
    known = {script.name: script for script in (*EVALUATORS, *twins_of(EVALUATORS))}
    if name.casefold() not in known:
        raise unknown_name("script", name, known, listed="hashbench list scripts")
    return known[name.casefold()]
