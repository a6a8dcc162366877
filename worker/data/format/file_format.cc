#include "worker/data/format/file_format.h"

#include "common/base/check.h"

namespace dt::worker {

void BlockResult::Clear(const RowLayout& layout, uint64_t expected_rows) {
  block.Clear(layout, expected_rows);
  lines = bad_lines = first_bad = 0;
  first_error.clear();
  first_place.clear();
  failed = OkStatus();
  widen = false;
}

std::unique_ptr<FileFormat> MakeFileFormat(FormatRequest request) {
  switch (request.format) {
#define DT_MAKE_FORMAT(Name) \
  case DataFormat::k##Name:  \
    return Make##Name##Format(std::move(request));
    DT_DATA_FORMATS(DT_MAKE_FORMAT)
#undef DT_MAKE_FORMAT
    case DataFormat::kBinary:
      break;
  }
  DT_UNREACHABLE();
}

}  // namespace dt::worker
