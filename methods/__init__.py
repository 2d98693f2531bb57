"""Hashing methods; users type a file's name with - for _.

A file without a leading underscore holds one method. Its first line describes it, as `hashbench list methods` does. The
other files are shared:

_linear            centring, principal directions and projections, for the linear methods
_anchors           Gaussian kernel features of the distances to anchors, for the kernel methods
_training_items    checks and preparation of training items
_pairs             pairs of training items, similar or not
_quadratic         the bit of a kernel function that agrees best with a pairwise matrix, for ksh and structhash
_graph_cuts        the signs of one bit by graph cuts, for fasthash and machash
_ndcg_bound        the bound on NDCG that structhash optimises
_pair_losses       functions of the losses on pairs of outputs
_histogram_losses  parameters and histograms of mihash and talr
_straight_through  codes with a gradient, for methods that train through the signs of outputs
"""
