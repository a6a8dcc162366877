// Small models for tests of the planner and the executor: columns label, C1, C2, C3 (keys), I1, I2
// (floats), tags (keys of varying length).
#pragma once

#include <string>
#include <vector>

#include "common/config/job_config.h"
#include "common/device/devices.h"

namespace dt::test {

std::vector<ColumnSpec> TinyColumns();

// A node as if it were on this line of model.yaml.
NodeConfig TinyNode(std::string name, std::string op, std::vector<std::string> inputs,
                    Attrs attrs = {}, int line = 0);

// Tables emb (dim 4) and wide (dim 1), Adam, batches of 8; the last node is the logit.
JobConfig TinyJob(std::vector<NodeConfig> nodes);

// Uses every composite and the parts that could break equality of results: a ragged bag, batch
// norm, dropout, several uses of a table, two tables.
std::vector<NodeConfig> TinyDeepFm();

// Dot products joined with what they are made of, and dropout after a ReLU.
std::vector<NodeConfig> TinyDlrm();

// A model with lists of varying length: a sequence, attention with and without softmax, activations
// with parameters, results with names of their own.
std::vector<NodeConfig> TinyDin();

// A job with every loss, some on the same nodes.
JobConfig TinyLosses();
// TinyLosses with scores of four negative items ("others"), with which the losses 5 and 6 compare
// "logit"; loss 7 is focal, and loss 0 has weighted positives.
JobConfig TinyMoreLosses();

// A column of this kind, for jobs whose columns are known only from the data.
ColumnSpec TinyColumn(std::string name, ColumnType type, ColumnRole role = ColumnRole::kFeature);

// An emulated accelerator, as workers report it.
DeviceInfo TinyAccelerator(uint64_t memory_bytes = 64 << 20);

}  // namespace dt::test
