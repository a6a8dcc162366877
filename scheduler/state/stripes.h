// The stripes of a job's data (data.shuffle.by: slices): who reads which, and what they all have.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/state/job_context.h"

namespace dt::scheduler {

// Tells a worker which stripes to read: those that it would have if it and all others that have
// joined trained now; all, if the job says so.
void SendReadData(JobContext& job, const Member& to);

// Adds what a worker has read to what is known of the data. Returns how they differ; "" if they
// agree.
std::string AddStripes(const std::vector<StripeReport>& read, DataReadyMessage& all);
// Whether all stripes are known.
bool HasAllStripes(const JobContext& job);
// StartMessage::stripe_rows.
std::vector<uint64_t> StripeRowsOf(const DataReadyMessage& data);

}  // namespace dt::scheduler
