// The families of operators and the files of CUDA kernels. Add a new one here; the lists of
// specifications and kernels are made from these.
#pragma once

// X(Family) for each family that has kernels. Its source defines FamilySpecs(), and the source of
// its CPU kernels FamilyKernels().
#define DT_OP_FAMILIES(X) \
  X(Bag)                  \
  X(BatchMatmul)          \
  X(BatchNorm)            \
  X(Bias)                 \
  X(Binary)               \
  X(Cast)                 \
  X(CinLayer)             \
  X(CrossLayer)           \
  X(DenseLayer)           \
  X(Dispatch)             \
  X(Dot)                  \
  X(Dropout)              \
  X(Embedding)            \
  X(ExpertMatmul)         \
  X(Fm)                   \
  X(Gather)               \
  X(GatherRows)           \
  X(Heads)                \
  X(Join)                 \
  X(L2Normalize)          \
  X(LayerNorm)            \
  X(Loss)                 \
  X(Matmul)               \
  X(NegativesLoss)        \
  X(Outer)                \
  X(Pick)                 \
  X(Prelu)                \
  X(Ragged)               \
  X(Reduce)               \
  X(ReduceMax)            \
  X(Reshape)              \
  X(Softmax)              \
  X(SoftmaxLoss)          \
  X(Step)                 \
  X(TableRow)             \
  X(TopK)                 \
  X(Unary)                \
  X(Where)

// X(Family) for each family whose nodes the executor runs itself; it has FamilySpecs() only.
#define DT_EXECUTOR_FAMILIES(X) \
  X(Collectives)                \
  X(Communication)

// X(File) for each source of CUDA kernels, which defines FileCudaKernels().
#define DT_CUDA_FILES(X) \
  X(Attention)           \
  X(BatchNorm)           \
  X(Dense)               \
  X(Dispatch)            \
  X(Dropout)             \
  X(Elementwise)         \
  X(Embedding)           \
  X(ExpertMatmul)        \
  X(Gated)               \
  X(Interaction)         \
  X(Loss)                \
  X(NegativesLoss)       \
  X(Norm)                \
  X(Outer)               \
  X(Pick)                \
  X(Reduce)              \
  X(Shape)               \
  X(SoftmaxLoss)         \
  X(Sparse)              \
  X(TableRow)            \
  X(TopK)                \
  X(Update)
