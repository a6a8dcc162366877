// How the rows of many keys are pulled and pushed. All of it is in this one file, because the
// compiler must see a loop and what it calls together.
#include <algorithm>
#include <array>

#include "common/runtime/work_span.h"
#include "server/table/embedding_table.h"

namespace dt::server {
namespace {

constexpr size_t kCacheLine = 64;

constinit WorkKind kPullWork{"server: reading rows"};
constinit WorkKind kPushWork{"server: updating rows"};

// The row number of an item whose key is not there.
constexpr uint32_t kAbsent = KeyIndex::kAbsent;

void PrefetchLines(const void* begin, size_t bytes) {
  const auto* const at = static_cast<const std::byte*>(begin);
  for (size_t offset = 0; offset < bytes; offset += kCacheLine) __builtin_prefetch(at + offset);
}

using Floats8 [[gnu::vector_size(32), gnu::aligned(4), gnu::may_alias]] = float;

// Inline and vectorised: a call per row would cost as much as the copy.
void CopyFloats(const float* from, size_t count, float* to) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    *reinterpret_cast<Floats8*>(to + i) = *reinterpret_cast<const Floats8*>(from + i);
  }
  for (; i < count; ++i) to[i] = from[i];
}

// Takes the keys of all runs through the stages of Work, block by block, so that each stage finds
// in the cache what an earlier one prefetched: buckets are prefetched a block ahead, rows some keys
// ahead. Short runs follow each other without a gap. Each stage is a small loop, so that the
// processor works on many keys, and translates many addresses, at once.
template <class Work>
class BlockPipeline {
 public:
  using Run = typename Work::Run;
  BlockPipeline(std::span<const Run> runs, Work& work)
      : run_(runs.begin()), end_(runs.end()), work_(work) {}

  void Go() {
    Begin(blocks_[0]);
    for (size_t b = 0; blocks_[b].size != 0; b ^= 1) {
      Block& block = blocks_[b];
      for (size_t i = 0; i < block.size; ++i) work_.Find(block.items[i]);
      Begin(blocks_[b ^ 1]);
      size_t fetched = 0;
      for (size_t i = 0; i < block.size; i += kChunk) {
        const size_t until = std::min(i + Work::kRowsAhead + kChunk, block.size);
        for (; fetched < until; ++fetched) work_.Fetch(block.items[fetched]);
        const size_t end = std::min(i + kChunk, block.size);
        for (size_t k = i; k < end; ++k) work_.Finish(block.items[k]);
      }
    }
  }

 private:
  static constexpr size_t kChunk = 16;

  struct Block {
    std::array<typename Work::Item, Work::kBlock> items;
    size_t size = 0;
  };

  void Begin(Block& block) {
    block.size = 0;
    while (block.size < Work::kBlock && run_ != end_) {
      const size_t n = std::min(Work::kBlock - block.size, run_->keys.size() - in_run_);
      work_.Begin(*run_, in_run_, {&block.items[block.size], n});
      block.size += n;
      in_run_ += n;
      if (in_run_ == run_->keys.size()) ++run_, in_run_ = 0;
    }
  }

  typename std::span<const Run>::iterator run_;
  const typename std::span<const Run>::iterator end_;
  size_t in_run_ = 0;
  Work& work_;
  std::array<Block, 2> blocks_;
};

}  // namespace

// What all pipelines have in common: finding the row.
struct PipelineItem {
  const EmbeddingTable* table;
  Key key;
  uint64_t hash;
  uint32_t row;
};

class Pipeline {
 public:
  static void Begin(const EmbeddingTable& table, Key key, PipelineItem& item) {
    item.table = &table;
    item.key = key;
    item.hash = table.index_.HashOf(key);
    __builtin_prefetch(table.index_.BucketOf(item.hash));
  }
  static void Find(PipelineItem& item) {
    const KeyIndex& index = item.table->index_;
    item.row = index.FindFirst(item.hash, item.key);
    if (item.row == KeyIndex::kFurther) __builtin_prefetch(index.SecondBucketOf(item.hash));
  }
  static void FindFurther(PipelineItem& item) {
    if (item.row == KeyIndex::kFurther) item.row = item.table->index_.Find(item.hash, item.key);
  }
};

class PullPipeline : Pipeline {
 public:
  using Run = EmbeddingTable::PullRun;
  // Measured, as are those of PushPipeline: smaller values are slower, larger ones not faster.
  static constexpr size_t kBlock = 256;
  static constexpr size_t kRowsAhead = 128;
  struct Item : PipelineItem {
    const std::byte* from;
    const RowHeader* header;  // Set only if the last push matters.
    std::byte* out;
    const Run* run;
  };
  explicit PullPipeline(bool evaluate) : evaluate_(evaluate) {}

  static void Begin(const Run& run, size_t first, std::span<Item> items) {
    const size_t bytes = RowBytes(run.format, run.table->dim());
    for (size_t i = 0; i < items.size(); ++i) {
      Pipeline::Begin(*run.table, run.keys[first + i], items[i]);
      items[i].out = static_cast<std::byte*>(run.out) + (first + i) * bytes;
      items[i].run = &run;
    }
  }
  using Pipeline::Find;
  static void Fetch(Item& item) {
    FindFurther(item);
    if (item.row == kAbsent) return;
    const TableRows& rows = *item.table->rows_;
    const bool missed = rows.has_missed_updates();
    item.from = rows.row(item.row);
    PrefetchLines(item.from, missed ? rows.row_bytes() : rows.values_bytes());
    item.header = nullptr;
    if (item.table->expiry_.expire_before() == 0 && !missed) return;
    item.header = &rows.header(item.row);
    __builtin_prefetch(item.header);
  }
  void Finish(const Item& item) const {
    if (item.row == kAbsent || IsExpired(item)) return WriteAbsent(item);
    const TableRows& rows = *item.table->rows_;
    const FloatFormat format = item.run->format;
    if (rows.has_missed_updates()) {
      rows.ReadMissed(item.from, {item.header->last_push() + 1, item.run->now}, format, item.out);
    } else if (format == FloatFormat::kFp32 && rows.spec().dtype == FloatFormat::kFp32) {
      CopyFloats(reinterpret_cast<const float*>(item.from), item.table->dim(),
                 reinterpret_cast<float*>(item.out));
    } else {
      rows.ReadValues(item.from, format, item.out);
    }
  }

 private:
  static bool IsExpired(const Item& item) {
    return item.header != nullptr && item.table->expiry_.IsExpired(item.header->last_push());
  }

  void WriteAbsent(const Item& item) const {
    if (evaluate_ && item.table->spec().eval_default == EvalDefault::kZeros) {
      // Zero in every format.
      std::fill_n(item.out, RowBytes(item.run->format, item.table->dim()), std::byte{0});
    } else {
      item.table->rows_->ReadInitial(item.key, item.run->format, item.out);
    }
  }

  const bool evaluate_;
};

class PushPipeline : Pipeline {
 public:
  using Run = EmbeddingTable::PushRun;
  static constexpr size_t kBlock = 64;
  static constexpr size_t kRowsAhead = 64;
  struct Item : PipelineItem {
    const Run* run;
    const std::byte* gradient;
    std::byte* to;
    RowHeader* header;
  };
  explicit PushPipeline(Step step) : step_(step) {}

  static void Begin(const Run& run, size_t first, std::span<Item> items) {
    const size_t bytes = RowBytes(run.format, run.table->dim());
    for (size_t i = 0; i < items.size(); ++i) {
      Pipeline::Begin(*run.table, run.keys[first + i], items[i]);
      items[i].run = &run;
      items[i].gradient = static_cast<const std::byte*>(run.gradients) + (first + i) * bytes;
    }
  }
  static void Find(Item& item) {
    Pipeline::Find(item);
    const RowAdmission& admission = item.table->admission_;
    if (item.row == kAbsent && !admission.admits_all()) {
      __builtin_prefetch(admission.CounterOf(item.key));
    }
  }
  static void Fetch(Item& item) {
    EmbeddingTable& table = *item.run->table;
    TableRows& rows = *table.rows_;
    // Rows may have been made since Find: other ones, or this one if a sender named its key twice.
    if (item.row >= KeyIndex::kFurther) item.row = table.index_.Find(item.key);
    const bool fresh = item.row == kAbsent;
    if (fresh) {
      if (!table.admission_.Admit(item.key)) return;
      item.row = rows.Add(item.key);
      table.index_.Insert(item.key, item.row);
    }
    item.to = rows.row(item.row);
    item.header = &rows.header(item.row);
    if (fresh) return;
    PrefetchLines(item.to, rows.row_bytes());
    __builtin_prefetch(item.header, 1);
  }
  void Finish(const Item& item) const {
    if (item.row == kAbsent) return;  // The key was not admitted.
    TableRows& rows = *item.table->rows_;
    const size_t dim = rows.spec().dim;
    if (RowSink* const sink = rows.first_changes(); sink != nullptr) [[unlikely]] {
      if (item.header->change() != RowHeader::kOnDisk &&
          item.header->change() != rows.change_period()) {
        item.run->table->SaveRow({item.key, item.row}, *sink);
      }
    }
    RowExpiry& expiry = item.run->table->expiry_;
    if (expiry.IsExpired(item.header->last_push())) {
      if (!item.run->table->admission_.Admit(item.key)) return;
      rows.Renew(item.row, item.key);
      expiry.CountExpired(1);
    }
    std::array<float, kRowDimMax> room;  // Not initialised: most rows need little of it.
    const float* const gradient = FloatsOf(item.run->format, item.gradient, {room.data(), dim});
    rows.Update(item.to, *item.run->update, {item.key, step_, *item.header, gradient});
    *item.header = {item.header->LastAfter(step_), rows.change_period()};
  }

 private:
  const Step step_;
};

class AbsencePipeline : Pipeline {
 public:
  using Run = EmbeddingTable::KeyRun;
  static constexpr size_t kBlock = 256;
  static constexpr size_t kRowsAhead = 128;
  struct Item : PipelineItem {
    EmbeddingTable* writable;
  };
  explicit AbsencePipeline(std::vector<EmbeddingTable::AbsentKey>& absent) : absent_(absent) {}

  static void Begin(const Run& run, size_t first, std::span<Item> items) {
    for (size_t i = 0; i < items.size(); ++i) {
      Pipeline::Begin(*run.table, run.keys[first + i], items[i]);
      items[i].writable = run.table;
    }
  }
  static void Find(Item& item) { item.row = item.writable->index_.Touch(item.hash, item.key); }
  static void Fetch(Item&) {}
  void Finish(const Item& item) {
    if (item.row == kAbsent) absent_.push_back({item.writable, item.key});
  }

 private:
  std::vector<EmbeddingTable::AbsentKey>& absent_;
};

void EmbeddingTable::Pull(std::span<const PullRun> runs, bool evaluate) {
  const WorkSpan span(kPullWork);
  for (const PullRun& run : runs) {
    const TableRows& rows = *run.table->rows_;
    const size_t row =
        kCacheLine + (rows.has_missed_updates() ? rows.row_bytes() : rows.values_bytes());
    kPullWork.Count(run.keys.size() * (row + RowBytes(run.format, run.table->dim())));
  }
  PullPipeline work(evaluate);
  BlockPipeline(runs, work).Go();
}

void EmbeddingTable::Push(std::span<const PushRun> runs, Step step) {
  for (const PushRun& run : runs) {
    if (run.table->changes_ != nullptr)
      run.table->changes_->insert(run.keys.begin(), run.keys.end());
  }
  const WorkSpan span(kPushWork);
  for (const PushRun& run : runs) {
    const size_t row = kCacheLine + 2 * (run.table->rows_->row_bytes() + sizeof(RowHeader));
    kPushWork.Count(run.keys.size() * (row + RowBytes(run.format, run.table->dim())));
  }
  PushPipeline work(step);
  BlockPipeline(runs, work).Go();
  for (const PushRun& run : runs) run.table->admission_.Settle();
}

void EmbeddingTable::WarmAndFindAbsent(std::span<const KeyRun> runs,
                                       std::vector<AbsentKey>& absent) {
  AbsencePipeline work(absent);
  BlockPipeline(runs, work).Go();
}

}  // namespace dt::server
