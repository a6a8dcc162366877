#include "worker/data/cache_build.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "common/base/log.h"
#include "common/base/written_paths.h"
#include "worker/data/cache_file.h"

namespace dt::worker {
namespace {

constexpr size_t kBlocksMax = 32;  // Blocks in one batch; three batches are in flight.

struct Piece {
  size_t input = 0;
  bool first = false;         // The first piece of its input.
  uint64_t header_lines = 0;  // Lines of the input's header, which are in no piece.
  uint64_t first_byte = 0;
  std::shared_ptr<const BlockDecoder> decoder;
  std::string bytes;
  RowScratch scratch;
  BlockResult result;
};

// Blocks that are decoded together. Pieces are kept for their memory; `count` are in use.
struct PieceBatch {
  explicit PieceBatch(size_t capacity) : pieces(capacity) {}
  std::vector<Piece> pieces;
  size_t count = 0;
  std::span<Piece> used() { return {pieces.data(), count}; }
};

class Build {
 public:
  Build(SplitSource& source, OnError on_error, CacheWriter& writer, TaskPool& pool)
      : source_(source), on_error_(on_error), writer_(writer), pool_(pool) {}

  // Sets `wider` and stops if the rows do not fit the source's key shape.
  Status Run(std::optional<KeyShape>& wider);
  uint64_t rows() const { return rows_; }

 private:
  Status Read(PieceBatch& batch);
  Status ReadPiece(Piece& piece, bool& filled);
  Status Write(PieceBatch& batch);
  Status Judge(PieceBatch& batch, std::optional<KeyShape>& wider);
  std::string PlaceOf(const BlockResult& result) const;

  SplitSource& source_;
  const OnError on_error_;
  CacheWriter& writer_;
  TaskPool& pool_;
  // Used by Read.
  size_t input_ = 0;
  std::unique_ptr<InputReader> reader_;  // The reader of input_, once it has been opened.
  uint64_t consumed_before_ = 0;         // Bytes of earlier inputs.
  // Used by Judge.
  uint64_t lines_before_ = 0;  // Lines of the current input before the current piece.
  uint64_t first_byte_ = 0;    // Where reading of the current input began.
  CacheMeta meta_;
  // Used by Write.
  uint64_t heap_words_ = 0;
  uint64_t rows_ = 0;
};

Status Build::ReadPiece(Piece& piece, bool& filled) {
  const InputList& inputs = source_.inputs();
  filled = false;
  for (; input_ < inputs.size(); ++input_, reader_ = nullptr) {
    piece.first = reader_ == nullptr;
    if (piece.first) {
      DT_TRY(reader_, source_.Open(input_));
    }
    DT_TRY_STATUS(reader_->Next(piece.bytes));
    if (piece.bytes.empty() && piece.first && !reader_->may_lack_rows()) {
      return Malformed("{}: an empty {} found, rows expected", inputs.name(input_),
                       inputs.is_command() ? "output" : "file");
    }
    if (!piece.bytes.empty()) {
      filled = true;
      break;
    }
    consumed_before_ += reader_->consumed();
  }
  if (!filled) return OkStatus();
  piece.input = input_;
  piece.header_lines = reader_->header_lines();
  piece.first_byte = reader_->first_byte();
  piece.decoder = reader_->decoder();
  return OkStatus();
}

Status Build::Read(PieceBatch& batch) {
  batch.count = 0;
  for (bool filled = true; filled && batch.count < batch.pieces.size();) {
    DT_TRY_STATUS(ReadPiece(batch.pieces[batch.count], filled));
    if (filled) ++batch.count;
  }
  return OkStatus();
}

// Of the first bad line.
std::string Build::PlaceOf(const BlockResult& result) const {
  if (!result.first_place.empty()) return " " + result.first_place;
  const uint64_t line = lines_before_ + result.first_bad + 1;
  return first_byte_ == 0 ? fmt::format("{}", line)
                          : fmt::format(" line {} behind byte {}", line, first_byte_);
}

// Goes in the order of the inputs, so that the first bad row is the same whoever decoded it.
Status Build::Judge(PieceBatch& batch, std::optional<KeyShape>& wider) {
  for (const Piece& piece : batch.used()) {
    if (piece.first) {
      lines_before_ = piece.header_lines;
      first_byte_ = piece.first_byte;
    }
    const BlockResult& result = piece.result;
    DT_TRY_STATUS(result.failed);
    if (result.widen) {
      wider = result.wider;
      return OkStatus();
    }
    if (result.bad_lines > 0 && meta_.rows_skipped == 0) {
      meta_.first_skipped =
          fmt::format("{}:{}: {}", WithWrittenPaths(source_.inputs().name(piece.input)),
                      PlaceOf(result), result.first_error);
      if (on_error_ == OnError::kStop) {
        return WithHint(Malformed("{}", meta_.first_skipped),
                        "correct the row, or set data.on_error to skip");
      }
    }
    meta_.rows_skipped += result.bad_lines;
    lines_before_ += result.lines;
  }
  return OkStatus();
}

Status Build::Write(PieceBatch& batch) {
  for (Piece& piece : batch.used()) {
    Block& block = piece.result.block;
    block.MoveHeap(heap_words_);
    DT_TRY_STATUS(writer_.Append(block.records(), block.heap()));
    heap_words_ += block.heap().size();
    rows_ += block.rows();
    if (meta_.columns.empty()) meta_.columns = piece.decoder->layout().columns();
  }
  return OkStatus();
}

Status Build::Run(std::optional<KeyShape>& wider) {
  const size_t blocks = std::clamp<size_t>(2 * pool_.threads(), 4, kBlocksMax);
  PieceBatch previous(blocks), current(blocks), next(blocks);
  DT_TRY_STATUS(Read(current));
  while (current.count + previous.count > 0) {
    Status read, written;
    pool_.ParallelFor(current.count + 2, 1, [&](size_t i, size_t) {
      if (i == 0) {
        read = Read(next);
      } else if (i == 1) {
        written = Write(previous);
      } else {
        Piece& piece = current.pieces[i - 2];
        piece.decoder->Decode(piece.bytes, piece.scratch, piece.result);
      }
    });
    DT_TRY_STATUS(Judge(current, wider));
    if (wider.has_value()) return OkStatus();
    DT_TRY_STATUS(written);
    DT_TRY_STATUS(read);
    std::swap(previous, current);
    std::swap(current, next);
    const uint64_t consumed = consumed_before_ + (reader_ ? reader_->consumed() : 0);
    const uint64_t total = source_.inputs().bytes();
    if (total > 0 && consumed > 0) {
      const double ratio = static_cast<double>(total) / static_cast<double>(consumed);
      writer_.set_bytes_expected(
          static_cast<uint64_t>(ratio * static_cast<double>(writer_.bytes_written())));
    }
  }
  if (rows_ == 0 && source_.is_part()) return OkStatus();
  if (rows_ == 0) {
    const InputList& inputs = source_.inputs();
    return Malformed("{}: no row found in {} input{}{}", inputs.name(0), inputs.size(),
                     inputs.size() == 1 ? "" : "s",
                     meta_.first_skipped.empty() ? "" : ", all were bad: " + meta_.first_skipped);
  }
  DT_TRY_STATUS(source_.inputs().CheckUnchanged());
  meta_.rows = rows_;
  meta_.options = source_.options_text();
  meta_.sources = source_.inputs().sources_text();
  return writer_.Finish(std::move(meta_), pool_);
}

}  // namespace

Result<uint64_t> BuildCache(SplitSource& source, OnError on_error, const std::string& path,
                            TaskPool& pool) {
  // There are at most two widenings: to a ragged shape, and to a weighted one.
  for (;;) {
    DT_TRY(const std::unique_ptr<CacheWriter> writer, CacheWriter::Create(path));
    std::optional<KeyShape> wider;
    Build build(source, on_error, *writer, pool);
    DT_TRY_STATUS(build.Run(wider));
    if (!wider.has_value()) return build.rows();
    source.Widen(*wider);
  }
}

}  // namespace dt::worker
