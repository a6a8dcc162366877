#include "worker/train/dense_blocks.h"

#include <algorithm>
#include <numeric>

#include "common/base/check.h"
#include "common/config/dense_tables.h"

namespace dt::worker {

DenseBlocks::DenseBlocks(const JobConfig& job, Engine& engine)
    : engine_(engine), first_(engine.plan().graph.tables.size()) {
  const std::vector<ParameterSpec>& parameters = engine.plan().graph.parameters;
  std::vector<size_t> trained, running;
  for (size_t p = 0; p < parameters.size(); ++p) {
    if (parameters[p].pushed != kNone) trained.push_back(p);
    if (!parameters[p].trained) running.push_back(p);
  }
  const std::vector<TableConfig> configs = DenseTables(job);
  DT_CHECK(configs.size() == 2);
  const auto wire = static_cast<uint32_t>(job.model.tables.size());
  Add(configs[0], wire, std::move(trained));
  Add(configs[1], wire + 1, std::move(running));
}

void DenseBlocks::Add(const TableConfig& config, uint32_t wire, std::vector<size_t> arrays) {
  Table table;
  table.keys = {.id = config.id, .keys = {}, .dim = config.dim, .wire = wire};
  size_t floats = 0;
  for (const size_t a : arrays) floats += engine_.parameters().arrays()[a].values.size();
  const size_t blocks = (floats + kDenseBlockFloats - 1) / kDenseBlockFloats;
  table.keys.keys.resize(blocks);
  std::iota(table.keys.keys.begin(), table.keys.keys.end(), Key{0});
  table.arrays = std::move(arrays);
  for (auto* const memory : {&table.pulled, &table.flat, &table.rows}) {
    memory->resize(blocks * kDenseBlockFloats);
  }
  tables_.push_back(std::move(table));
}

std::vector<DenseBlockTable> DenseBlocks::tables() const {
  std::vector<DenseBlockTable> tables;
  for (const Table& table : tables_) tables.push_back(table.keys);
  return tables;
}

void DenseBlocks::Take(const LookupPlan& plan, std::span<const std::span<const float>> rows) {
  for (size_t t = 0; t < tables_.size(); ++t) {
    Table& table = tables_[t];
    const std::vector<Key>& keys = plan.tables[first_ + t];
    DT_CHECK(rows[first_ + t].size() == table.pulled.size());
    for (size_t row = 0; row < keys.size(); ++row) {
      std::copy_n(rows[first_ + t].data() + row * kDenseBlockFloats, kDenseBlockFloats,
                  table.pulled.data() + keys[row] * kDenseBlockFloats);
    }
    const float* from = table.pulled.data();
    for (const size_t a : table.arrays) {
      std::vector<float>& values = engine_.parameters().arrays()[a].values;
      std::copy_n(from, values.size(), values.data());
      from += values.size();
    }
  }
}

template <class Fill>
void DenseBlocks::FillFlat(Table& table, const Fill& fill) {
  size_t at = 0;
  for (const size_t a : table.arrays) {
    const size_t size = engine_.parameters().arrays()[a].values.size();
    fill(a, at, std::span(table.flat).subspan(at, size));
    at += size;
  }
  std::fill(table.flat.begin() + static_cast<ptrdiff_t>(at), table.flat.end(), 0.0f);
}

DenseBlocks::Rows DenseBlocks::InRowOrder(const LookupPlan& plan) {
  Rows rows;
  for (size_t t = 0; t < tables_.size(); ++t) {
    Table& table = tables_[t];
    const std::vector<Key>& keys = plan.tables[first_ + t];
    for (size_t row = 0; row < keys.size(); ++row) {
      std::copy_n(table.flat.data() + keys[row] * kDenseBlockFloats, kDenseBlockFloats,
                  table.rows.data() + row * kDenseBlockFloats);
    }
    rows[t] = table.rows;
  }
  return rows;
}

DenseBlocks::Rows DenseBlocks::Changes(const LookupPlan& plan, float share) {
  FillFlat(tables_[0], [&](size_t a, size_t, std::span<float> to) {
    std::ranges::copy(engine_.pushed(a), to.begin());
  });
  // Servers subtract what is pushed: the old value minus the new one.
  FillFlat(tables_[1], [&](size_t a, size_t at, std::span<float> to) {
    const std::vector<float>& values = engine_.parameters().arrays()[a].values;
    for (size_t i = 0; i < to.size(); ++i) {
      to[i] = share * (tables_[1].pulled[at + i] - values[i]);
    }
  });
  return InRowOrder(plan);
}

DenseBlocks::Rows DenseBlocks::Values(const LookupPlan& plan) {
  for (Table& table : tables_) {
    FillFlat(table, [&](size_t a, size_t, std::span<float> to) {
      std::ranges::copy(engine_.parameters().arrays()[a].values, to.begin());
    });
  }
  return InRowOrder(plan);
}

}  // namespace dt::worker
