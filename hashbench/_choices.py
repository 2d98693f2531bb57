"""What users choose by name, where commands can offer it before anything heavy is imported."""

DISTANCES = ("hamming", "cosine", "dot")  # by which codes, or outputs before the sign, are ranked
TRUE_DISTANCES = ("euclidean", "cosine", "dot")  # by which features of queries and database may be compared
OWN_RULES = ("same-label", "shared-labels", "distance", "neighbours")  # affinity rules for the user's own data
DEVICES = ("auto", "cpu", "cuda")
BIT_ORDERS = ("little", "big")
UNDEFINED = ("skip", "paper")
MODEL_TARGETS = ("faiss", "npz", "onnx")
CODES_TARGETS = ("faiss", "hex", "npy", "pgvector", "usearch")
PRECISIONS = ("float64", "float32")
CLASSES_OF = ("unseen", "all")  # which classes queries and database of an unseen-class protocol are of
