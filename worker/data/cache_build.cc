#include "worker/data/cache_build.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "common/base/log.h"
#include "common/base/written_paths.h"
#include "worker/data/cache_file.h"
#include "worker/data/input/block_reader.h"

namespace dt::worker {
namespace {

constexpr size_t kBlocksMax = 32;  // Blocks of text in one batch; three batches are in flight.

struct Piece {
  size_t input = 0;
  bool first = false;       // The first piece of its input.
  uint64_t skip_lines = 0;  // Lines of the header.
  std::shared_ptr<const RowFormat> format;
  std::string text;
  LineScratch scratch;
  BlockResult result;
};

// Blocks that are parsed together. Pieces are kept for their memory; `count` are in use.
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

 private:
  Status Read(PieceBatch& batch);
  Status ReadPiece(Piece& piece, bool& filled);
  Status Write(PieceBatch& batch);
  Status Judge(PieceBatch& batch, std::optional<KeyShape>& wider);

  SplitSource& source_;
  const OnError on_error_;
  CacheWriter& writer_;
  TaskPool& pool_;
  // Used by Read.
  size_t input_ = 0;
  std::unique_ptr<BlockReader> reader_;  // The reader of input_, once it has been opened.
  SplitSource::Format format_;
  uint64_t consumed_before_ = 0;  // Bytes of earlier inputs.
  // Used by Judge.
  uint64_t lines_before_ = 0;  // Lines of the current input before the current piece.
  CacheMeta meta_;
  // Used by Write.
  uint64_t heap_words_ = 0;
  uint64_t rows_ = 0;
};

Status Build::ReadPiece(Piece& piece, bool& filled) {
  filled = false;
  for (; input_ < source_.inputs(); ++input_, reader_ = nullptr) {
    piece.first = reader_ == nullptr;
    if (piece.first) {
      DT_TRY(auto bytes, source_.Open(input_));
      reader_ = std::make_unique<BlockReader>(std::move(bytes), source_.name(input_));
    }
    DT_TRY_STATUS(reader_->Next(piece.text));
    if (piece.text.empty() && piece.first) {
      return Malformed("{}: an empty {} found, rows expected", source_.name(input_),
                       source_.is_command() ? "output" : "file");
    }
    if (!piece.text.empty()) {
      filled = true;
      break;
    }
    consumed_before_ += reader_->consumed();
  }
  if (!filled) return OkStatus();
  piece.input = input_;
  piece.skip_lines = 0;
  if (piece.first) {
    DT_TRY(format_, source_.FormatFor(input_, piece.text));
    if (format_.has_header) {
      const size_t end = std::min(piece.text.find('\n'), piece.text.size() - 1);
      piece.text.erase(0, end + 1);
      piece.skip_lines = 1;
    }
  }
  piece.format = format_.rows;
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

// Goes in the order of the inputs, so that the first bad row is the same whoever parsed it.
Status Build::Judge(PieceBatch& batch, std::optional<KeyShape>& wider) {
  for (const Piece& piece : batch.used()) {
    if (piece.first) lines_before_ = piece.skip_lines;
    const BlockResult& result = piece.result;
    if (result.widen) {
      wider = result.wider;
      return OkStatus();
    }
    if (result.bad_lines > 0 && meta_.rows_skipped == 0) {
      meta_.first_skipped = fmt::format("{}:{}: {}", WithWrittenPaths(source_.name(piece.input)),
                                        lines_before_ + result.first_bad + 1, result.first_error);
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
    if (meta_.columns.empty()) meta_.columns = piece.format->layout().columns();
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
        ParseBlock(*piece.format, piece.text, piece.scratch, piece.result);
      }
    });
    DT_TRY_STATUS(Judge(current, wider));
    if (wider.has_value()) return OkStatus();
    DT_TRY_STATUS(written);
    DT_TRY_STATUS(read);
    std::swap(previous, current);
    std::swap(current, next);
    const uint64_t consumed = consumed_before_ + (reader_ ? reader_->consumed() : 0);
    if (source_.bytes() > 0 && consumed > 0) {
      const double ratio = static_cast<double>(source_.bytes()) / static_cast<double>(consumed);
      writer_.set_bytes_expected(
          static_cast<uint64_t>(ratio * static_cast<double>(writer_.bytes_written())));
    }
  }
  if (rows_ == 0) {
    return Malformed("{}: no row found in {} input{}{}", source_.name(0), source_.inputs(),
                     source_.inputs() == 1 ? "" : "s",
                     meta_.first_skipped.empty() ? "" : ", all were bad: " + meta_.first_skipped);
  }
  meta_.rows = rows_;
  meta_.options = source_.OptionsText();
  meta_.sources = source_.sources_text();
  return writer_.Finish(std::move(meta_), pool_);
}

}  // namespace

Status BuildCache(SplitSource& source, OnError on_error, const std::string& path, TaskPool& pool) {
  // There are at most two widenings: to a ragged shape, and to a weighted one.
  for (;;) {
    DT_TRY(const std::unique_ptr<CacheWriter> writer, CacheWriter::Create(path));
    std::optional<KeyShape> wider;
    DT_TRY_STATUS(Build(source, on_error, *writer, pool).Run(wider));
    if (!wider.has_value()) return OkStatus();
    source.Widen(*wider);
  }
}

}  // namespace dt::worker
