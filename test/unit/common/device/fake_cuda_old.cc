// A CUDA library of another build: it supports no version that it is asked for.
#include "common/device/cuda_table.h"

extern "C" bool DtFillCudaTable(uint32_t, dt::CudaTable*) { return false; }
