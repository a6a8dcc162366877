// Moved: wire includes cluster, so what includes wire is not in cluster.
#pragma once
#include "common/control/control_link.h"
