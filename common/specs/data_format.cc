#include "common/specs/data_format.h"

#include <fmt/format.h>

#include "common/base/text.h"

namespace dt {

std::vector<ColumnSpec> OwnColumnsOf(const DataFormatInfo& format) {
  std::vector<ColumnSpec> columns;
  for (const OwnColumns& own : format.own_columns) {
    ColumnSpec column;
    column.type = own.type;
    column.role = own.role;
    column.transform = own.transform;
    if (own.count == 0) {
      column.name = own.name;
      columns.push_back(column);
    }
    for (uint32_t i = 1; i <= own.count; ++i) {
      column.name = fmt::format("{}{}", own.name, i);
      columns.push_back(column);
    }
  }
  return columns;
}

std::string OwnColumnsText(const DataFormatInfo& format) {
  std::vector<std::string> names;
  for (const OwnColumns& own : format.own_columns) {
    names.push_back(own.count == 0 ? std::string(own.name)
                                   : fmt::format("{0}1..{0}{1}", own.name, own.count));
  }
  return JoinText(names, ", ");
}

}  // namespace dt
