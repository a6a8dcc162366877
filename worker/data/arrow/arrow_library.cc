#include "worker/data/arrow/arrow_library.h"

#include <filesystem>

#include <dlfcn.h>

namespace dt::worker {
namespace {

constexpr std::string_view kInstall =
    "run scripts/setup.sh, which installs the Python package pyarrow, and build again";
constexpr std::string_view kPyarrow =
    "it is in the Python package pyarrow that this was built with: run scripts/setup.sh, which "
    "installs it, and build again, or take the folder that scripts/package.sh makes";

}  // namespace

std::string ArrowLibrary::DefaultPath() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  return (program.parent_path() / "libdovetail_arrow.so").string();
}

Result<ArrowLibrary> ArrowLibrary::Open(std::string_view user, const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return WithHint(
        WithWhere(Unavailable("{} needs Arrow, and this build has no such library", user), path),
        kInstall);
  }
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    const char* const why = dlerror();
    return WithHint(Unavailable("{} needs Arrow, which cannot be loaded: {}", user,
                                why == nullptr ? "unknown reason" : why),
                    kPyarrow);
  }
  void* const symbol = dlsym(library, kArrowTableSymbol);
  ArrowTable table;
  if (symbol == nullptr || !reinterpret_cast<FillArrowTable>(symbol)(kArrowTableVersion, &table)) {
    dlclose(library);
    return WithHint(
        WithWhere(Unavailable("the Arrow library belongs to another build of the program"), path),
        "build both together: cmake --workflow --preset release");
  }
  return ArrowLibrary(table);
}

bool ArrowLibrary::IsOpen(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (library != nullptr) dlclose(library);
  return library != nullptr;
}

Status ToStatus(const ArrowError& error, std::string_view subject) {
  switch (error.code) {
    case ArrowCode::kOk:
      return OkStatus();
    case ArrowCode::kNotFound:
      return NotFound("{}: {}", subject, error.text);
    case ArrowCode::kMalformed:
      return Malformed("{}: {}", subject, error.text);
    case ArrowCode::kTimeout:
      return Timeout("{}: {}", subject, error.text);
    case ArrowCode::kUnavailable:
      break;
  }
  return Unavailable("{}: {}", subject, error.text);
}

}  // namespace dt::worker
