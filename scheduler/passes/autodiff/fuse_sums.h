// Joins the gradient sums of a step into buckets, which travel one after the other while the rest
// of the backward pass computes: few buckets waste little time on messages, many begin earlier (Li
// et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training", 2020).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/config/job_config.h"
#include "common/graph/graph.h"

namespace dt::scheduler {

// The sum of a gradient over the slices of a step.
struct SumToFuse {
  NodeIndex producer = kNone;  // The node that makes the gradient.
  double bytes = 0;            // Size of the whole gradient, so that all workers of a team agree.
  Attrs held;                  // Who gets it; only equal ones can share a bucket.
  uint32_t fusion = 0;         // If not 0: shares one with all sums of this number, and no others.
};

// By sum: the number of its bucket, from 0 on. Buckets are in the order in which the last of their
// gradients are made. With FusionConfig::automatic(), each but the last ones has an eighth of all
// bytes, but at least 256 KiB and at most 64 MiB.
std::vector<uint32_t> FuseSums(std::span<const SumToFuse> sums, const FusionConfig& fusion);

}  // namespace dt::scheduler
