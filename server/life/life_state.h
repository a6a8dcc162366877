// What a checkpoint keeps of a table's admission and expiry in one shard, beside the rows.
#pragma once

#include <string>
#include <string_view>

#include "common/base/status.h"
#include "server/life/row_admission.h"
#include "server/life/row_expiry.h"

namespace dt::server {

// Empty if there is nothing to keep.
std::string EncodeLifeState(const RowAdmission& admission, const RowExpiry& expiry);

// Restores the output of EncodeLifeState; fields that the current rules do not use are ignored.
// Returns false if the counts were reset because the sketch had another size. Malformed: `state` is
// not an output of EncodeLifeState.
Result<bool> RestoreLifeState(std::string_view state, RowAdmission& admission, RowExpiry& expiry);

}  // namespace dt::server
