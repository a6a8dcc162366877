// The tables of common/specs and of the shard map, for the codecs that carry them.
#pragma once

#include "common/cluster/shard_map.h"
#include "common/specs/column.h"
#include "common/specs/init.h"
#include "common/specs/source_mark.h"
#include "common/wire/tables.h"
#include "specs_generated.h"

namespace dt::tables {

DT_TABLE(ColumnSpec, dt::specs_fbs::Column);
DT_TABLE(SourceMark, dt::specs_fbs::SourceMark);
DT_TABLE(InitSpec, dt::specs_fbs::Init);
DT_TABLE(ServerInfo, dt::specs_fbs::Server);
DT_TABLE(Chain, dt::specs_fbs::Chain);
DT_TABLE(ShardChain, dt::specs_fbs::ShardChain);
DT_TABLE(MapChange, dt::specs_fbs::MapChange);
DT_LAST(ColumnType, kStrings);
DT_LAST(ColumnRole, kWeight);
DT_LAST(InitKind, kXavierUniform);

}  // namespace dt::tables
