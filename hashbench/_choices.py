"""Choices of options, importable before anything heavy."""

DISTANCES = ("hamming", "jaccard", "cosine", "dot")  # of codes, of bits or counts, of outputs before the sign
TRUE_DISTANCES = ("euclidean", "cosine", "dot")  # of features
OWN_RULES = ("same-label", "shared-labels", "distance", "neighbours")  # affinity rules for the user's own data
NEIGHBOUR_TIES = ("first", "all")  # which items as near as the last neighbour are relevant
LEAVE_OUT = ("duplicates", "zeros")  # of the user's own data: queries with copies, items whose features are all 0
DEVICES = ("auto", "cpu", "cuda")
BIT_ORDERS = ("little", "big")
ENCODINGS = ("base64",)  # of packed codes as strings
UNDEFINED = ("skip", "paper", "zero")
MODEL_TARGETS = ("faiss", "npz", "onnx")
CODES_TARGETS = ("faiss", "hex", "npy", "pgvector", "usearch")
PRECISIONS = ("float64", "float32")
CLASSES_OF = ("unseen", "all")  # of queries and database in an unseen-class protocol
