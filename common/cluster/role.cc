#include "common/cluster/role.h"

#include "common/base/text.h"

namespace dt {

std::string_view NameOf(Role role) { return ChoiceOf("scheduler|server|worker", role); }

}  // namespace dt
