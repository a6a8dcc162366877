// The tables of the specs, for the codecs that carry them.
#pragma once

#include "common/specs/column.h"
#include "common/specs/init.h"
#include "common/specs/source_mark.h"
#include "common/wire/tables.h"
#include "specs_generated.h"

namespace dt::tables {

DT_TABLE(ColumnSpec, dt::specs_fbs::Column);
DT_TABLE(SourceMark, dt::specs_fbs::SourceMark);
DT_TABLE(InitSpec, dt::specs_fbs::Init);
DT_LAST(ColumnType, kStrings);
DT_LAST(ColumnRole, kWeight);
DT_LAST(InitKind, kXavierUniform);

}  // namespace dt::tables
