#include "common/base/text.h"
#include "common/specs/column.h"
#include "common/specs/device_tag.h"
#include "common/specs/init.h"
#include "common/specs/optimizer.h"
#include "common/specs/row_life.h"

namespace dt {

std::string_view NameOf(ColumnType type) { return ChoiceOf(kColumnTypeNames, type); }
std::string_view NameOf(Device device) { return ChoiceOf(kDeviceNames, device); }
std::string_view NameOf(InitKind kind) { return ChoiceOf(kInitNames, kind); }
std::string_view NameOf(L2Scope scope) { return ChoiceOf(kL2ScopeNames, scope); }
std::string_view NameOf(UpdateScope scope) { return ChoiceOf(kUpdateScopeNames, scope); }
std::string_view NameOf(EvalDefault value) { return ChoiceOf(kEvalDefaultNames, value); }

}  // namespace dt
