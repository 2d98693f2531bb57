"""Hashing methods, one file each; users type the file's name, with - for _.

Files that start with _ are shared:

    _linear            centring, principal directions, projections: lsh, pcah, pca_rr, itq, sh, sign
    _training_items    what methods ask of training items, and do with them first
    _pairs             pairs of training items, similar or not
    _anchors           Gaussian features of the distances to a few training items
    _quadratic         the bit of a kernel function that agrees best with a matrix of pairs: ksh, structhash
    _graph_cuts        the signs of one bit by graph cuts: fasthash, machash
    _ndcg_bound        the bound that structhash optimises
    _pair_losses       losses on pairs of outputs
    _straight_through  codes with the gradient of outputs: greedyhash, greedyhash_unsupervised, bihalf
    _histogram_losses  soft histograms of a batch: mihash, talr_ap, talr_ndcg
"""
