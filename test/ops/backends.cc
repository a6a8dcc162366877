#include "test/ops/backends.h"

#include <cstring>

#include "common/device/emulated_accelerator.h"
#include "ops/cuda/call.h"
#include "ops/op_spec.h"

namespace dt::test {
namespace {

// ------------------------------------------------------------------ emulated

class EmulatedBackend : public Backend {
 public:
  EmulatedBackend()
      : device_(EmulatedAccelerator::Create({}).value()), queue_(device_->NewQueue().value()) {}

  void Run(const Work& work) override {
    std::vector<DeviceMemory> memory;
    const std::vector<TensorView> inputs = OnDevice(work.inputs, memory);
    const std::vector<TensorView> outputs = OnDevice(work.outputs, memory);
    const Kernel kernel = FindKernel(work.node.op);
    DT_CHECK_MSG(kernel != nullptr, "{} has no kernel", work.node.op);
    std::vector<std::byte> scratch(64, std::byte{0xff});
    KernelContext context{work.node, inputs, outputs, work.run, pool_, scratch};
    kernel(context);
    size_t at = 0;
    for (const std::span<const TensorView> views : {work.inputs, work.outputs}) {
      for (const TensorView& view : views) {
        DT_CHECK(queue_->CopyToHost(view.data, memory[at++].data(), view.bytes()).ok());
      }
    }
    Await();
  }

 private:
  std::vector<TensorView> OnDevice(std::span<const TensorView> views,
                                   std::vector<DeviceMemory>& memory) {
    std::vector<TensorView> there(views.begin(), views.end());
    for (TensorView& view : there) {
      DeviceMemory& block =
          memory.emplace_back(DeviceMemory::Make(*device_, view.bytes() + 8).value());
      DT_CHECK(queue_->CopyToDevice(block.data(), view.data, view.bytes()).ok());
      view.data = device_->Real(block.data());
    }
    Await();
    return there;
  }
  void Await() {
    const auto event = device_->NewEvent().value();
    DT_CHECK(queue_->Record(*event).ok() && event->Wait(seconds(60)).ok());
  }

  const std::unique_ptr<EmulatedAccelerator> device_;
  const std::unique_ptr<DeviceQueue> queue_;
  TaskPool pool_{1};
};

// ------------------------------------------------------------------ CUDA

constexpr size_t kGuardBytes = 256;
constexpr std::byte kGuard{0xa5}, kNoNumber{0xff};

void Check(CudaError error, const char* doing) {
  DT_CHECK_MSG(error == nullptr, "{}: {}", doing, error == nullptr ? "" : error);
}

// Device memory, followed by guard bytes.
class Guarded {
 public:
  // Makes `bytes` of memory that starts with `host`; the rest is NaN.
  Guarded(const CudaTable& table, int32_t device, CudaStream* stream, size_t bytes,
          std::span<const std::byte> host)
      : table_(table), device_(device), stream_(stream), bytes_(bytes) {
    std::vector<std::byte> content(bytes, kNoNumber);
    std::ranges::copy(host, content.begin());
    content.resize(bytes + kGuardBytes, kGuard);
    Check(table.allocate(device, content.size(), &data_), "allocate");
    Check(table.copy_to_device(stream, data_, content.data(), content.size()), "copy to the card");
  }
  ~Guarded() { Check(table_.free(device_, data_), "free"); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  void* data() const { return data_; }
  // Waits for the work of the stream.
  std::vector<std::byte> Read(std::string_view op) const {
    std::vector<std::byte> content(bytes_ + kGuardBytes);
    Check(table_.copy_to_host(stream_, content.data(), data_, content.size()), "copy to the host");
    for (size_t i = bytes_; i < content.size(); ++i) {
      DT_CHECK_MSG(content[i] == kGuard, "{} writes beside its memory", op);
    }
    content.resize(bytes_);
    return content;
  }

 private:
  const CudaTable& table_;
  const int32_t device_;
  CudaStream* const stream_;
  const size_t bytes_;
  void* data_ = nullptr;
};

class CudaBackend : public Backend {
 public:
  CudaBackend(const CudaTable& table, int32_t device) : table_(table), device_(device) {
    Check(table.make_stream(device, &stream_), "make a stream");
  }
  ~CudaBackend() override { table_.destroy_stream(stream_); }
  CudaBackend(const CudaBackend&) = delete;
  CudaBackend& operator=(const CudaBackend&) = delete;

  void Run(const Work& work) override {
    const CudaKernel* kernel = table_.find_kernel(work.node.op.c_str());
    DT_CHECK_MSG(kernel != nullptr, "{} has no CUDA kernel", work.node.op);
    std::vector<int64_t> extents(work.sizes.begin(), work.sizes.end());
    for (size_t s = kBatch + 1; s < extents.size(); ++s) extents[s] = 2 * extents[s] + 3;
    CudaNode node = CudaNode::Make(work.graph, work.node, extents).value();
    CudaCall& call = node.call();
    const CudaRun sizes = CudaRunOf(work.run, work.sizes);
    const auto run = Copy(sizeof(sizes), std::as_bytes(std::span(&sizes, 1)));
    call.run = static_cast<const CudaRun*>(run->data());
    call.stream = stream_;
    std::vector<std::unique_ptr<Guarded>> inputs, outputs;
    for (size_t i = 0; i < work.inputs.size(); ++i) {
      const TensorView& view = work.inputs[i];
      inputs.push_back(Copy(Capacity(node.input(i)), Bytes(view)));
      node.input(i).data = inputs.back()->data();
    }
    for (size_t i = 0; i < work.outputs.size(); ++i) {
      outputs.push_back(Copy(Capacity(node.output(i)), {}));
      node.output(i).data = outputs.back()->data();
    }
    const size_t bytes = kernel->scratch_bytes == nullptr ? 0 : kernel->scratch_bytes(call);
    const auto scratch = Copy(bytes, {});
    call.scratch = scratch->data();
    Check(kernel->launch(call), work.node.op.c_str());
    scratch->Read(work.node.op);
    run->Read(work.node.op);
    TakeBack(work, inputs, outputs);
  }

 private:
  static std::span<std::byte> Bytes(const TensorView& view) {
    return {static_cast<std::byte*>(view.data), view.bytes()};
  }
  static size_t Capacity(const CudaTensor& tensor) {
    size_t bytes = SizeOf(static_cast<DType>(tensor.dtype));
    for (int i = 0; i < tensor.rank; ++i) bytes *= static_cast<size_t>(tensor.extent[i]);
    return bytes;
  }
  std::unique_ptr<Guarded> Copy(size_t bytes, std::span<const std::byte> host) {
    return std::make_unique<Guarded>(table_, device_, stream_, bytes, host);
  }
  static void TakeBack(const Work& work, const std::vector<std::unique_ptr<Guarded>>& inputs,
                       const std::vector<std::unique_ptr<Guarded>>& outputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const std::vector<std::byte> content = inputs[i]->Read(work.node.op);
      const std::span<std::byte> host = Bytes(work.inputs[i]);
      DT_CHECK_MSG(TraitsOf(work.node.op).writes.Has(i) ||
                       std::equal(host.begin(), host.end(), content.begin()),
                   "{} changes input {}", work.node.op, i);
      std::copy_n(content.begin(), host.size(), host.begin());
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::vector<std::byte> content = outputs[i]->Read(work.node.op);
      std::copy_n(content.begin(), work.outputs[i].bytes(), Bytes(work.outputs[i]).begin());
    }
  }

  const CudaTable& table_;
  const int32_t device_;
  CudaStream* stream_ = nullptr;
};

}  // namespace

std::unique_ptr<Backend> MakeEmulatedBackend() { return std::make_unique<EmulatedBackend>(); }

std::unique_ptr<Backend> MakeCudaBackend(const CudaTable& table, int32_t device) {
  return std::make_unique<CudaBackend>(table, device);
}

}  // namespace dt::test
