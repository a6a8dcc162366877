// Small models for tests of the planner and the executor: columns label, C1, C2, C3 (keys), I1, I2
// (floats), tags (keys of varying length).
#pragma once

#include <string>
#include <vector>

#include "common/config/job_config.h"
#include "common/device/devices.h"

namespace dt::test {

std::vector<ColumnSpec> TinyColumns();

// A node as if it stood in model.yaml, line `line`.
NodeConfig TinyNode(std::string name, std::string op, std::vector<std::string> inputs,
                    Attrs attrs = {}, int line = 0);

// Tables emb (dim 4) and wide (dim 1), Adam, batches of 8; the last node is the logit.
JobConfig TinyJob(std::vector<NodeConfig> nodes);

// Every composite and the parts that break equality: ragged bag, batch norm, dropout, several uses
// of a table, two tables.
std::vector<NodeConfig> TinyDeepFm();

// Lists of varying length: a sequence, attention with and without softmax, activations with
// parameters, results with names of their own.
std::vector<NodeConfig> TinyDin();

// A job with every loss, some on the same nodes.
JobConfig TinyLosses();

// A column of the kind, for jobs whose columns only the data tells.
ColumnSpec TinyColumn(std::string name, ColumnType type, ColumnRole role = ColumnRole::kFeature);

// An emulated one, as workers tell of it.
DeviceInfo TinyAccelerator(uint64_t memory_bytes = 64 << 20);

}  // namespace dt::test
