#include "common/storage/path_below.h"

namespace dt {

Result<std::string> PathBelow(const std::string& folder, const std::string& name) {
  const bool plain = !name.empty() && name != "." && name != ".." && name.size() <= 255 &&
                     name.find_first_of(std::string("/\0", 2)) == std::string::npos;
  if (!plain) return Malformed("\"{}\" is not the name of something in {}", name, folder);
  return folder + "/" + name;
}

}  // namespace dt
