#include "common/device/cuda_library.h"

#include <array>
#include <filesystem>

#include <dlfcn.h>

namespace dt {
namespace {

constexpr std::string_view kUseCpu =
    "set cluster.devices to cpu or emulated, or use a build and a machine with CUDA";

constexpr std::string_view kPackIt =
    "put libcublasLt of the CUDA toolkit that this was built with beside libdovetail_cuda.so, or "
    "take "
    "the folder that scripts/package.sh makes (docs/gpu.md)";

std::string LastLoadError() {
  const char* text = dlerror();
  return text == nullptr ? "unknown reason" : text;
}

Status CheckThere(const std::string& path) {
  std::error_code error;
  if (std::filesystem::exists(path, error)) return OkStatus();
  return WithHint(
      WithWhere(Unavailable("this build has no CUDA library; there is no such file"), path),
      kUseCpu);
}

// The driver stays loaded, because a caller that asks for it will use it.
bool DriverLoads() { return dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) != nullptr; }

}  // namespace

std::string CudaLibrary::DefaultPath() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  return (program.parent_path() / "libdovetail_cuda.so").string();
}

Result<CudaLibrary> CudaLibrary::OpenForCards() {
  DT_TRY_STATUS(CheckThere(DefaultPath()));
  if (DriverLoads()) return Open();
  return WithHint(Unavailable("this machine has no NVIDIA driver: {}", LastLoadError()), kUseCpu);
}

Result<CudaLibrary> CudaLibrary::Open(const std::string& path) {
  DT_TRY_STATUS(CheckThere(path));
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    const std::string why = LastLoadError();
    return WithHint(Unavailable("the CUDA library cannot be loaded: {}", why),
                    why.find("libcublasLt") == std::string::npos ? kUseCpu : kPackIt);
  }
  void* symbol = dlsym(library, kCudaTableSymbol);
  CudaTable table;
  if (symbol == nullptr || !reinterpret_cast<FillCudaTable>(symbol)(kCudaTableVersion, &table)) {
    dlclose(library);
    return WithHint(
        WithWhere(Unavailable("the CUDA library belongs to another build of the program"), path),
        "build both together: cmake --workflow --preset release");
  }
  return CudaLibrary(table);
}

Result<int> CudaLibrary::CountDevices() const {
  int32_t count = 0;
  const CudaError error = table_.count_devices(&count);
  if (error != nullptr || count == 0) {
    return WithHint(Unavailable("no CUDA card can be used: {}",
                                error != nullptr ? error : "the driver names none"),
                    kUseCpu);
  }
  return count;
}

Result<CudaDevice> CudaLibrary::Describe(int device) const {
  CudaDevice found;
  if (const CudaError error = table_.describe(device, &found); error != nullptr) {
    return WithHint(Unavailable("CUDA card {} cannot be used: {}", device, error), kUseCpu);
  }
  return found;
}

Status CudaLibrary::Probe(int device) const {
  constexpr std::array<float, 4> kLeft = {1, 2, 3, 4};
  constexpr std::array<float, 4> kRight = {0.5f, 0.25f, 0.125f, -4};
  std::array<float, 4> sum = {};
  const CudaError error =
      table_.add_f32(device, kLeft.data(), kRight.data(), sum.data(), sum.size());
  if (error != nullptr) {
    return WithHint(Unavailable("CUDA card {} does not run this build's code: {}", device, error),
                    "build for this card with -DCMAKE_CUDA_ARCHITECTURES=<its capability>");
  }
  if (sum != std::array<float, 4>{1.5f, 2.25f, 3.125f, 0}) {
    return Unavailable("CUDA card {} computes wrong sums; leave it out", device);
  }
  return OkStatus();
}

}  // namespace dt
