// NCCL, loaded while the program runs: a build needs its header only, and works without it.
#include <cstring>
#include <memory>

#include <dlfcn.h>

#include "common/device/cuda_stream.cuh"

#if __has_include(<nccl.h>)
#include <nccl.h>

namespace dt {

struct NcclComm {
  ncclComm_t comm = nullptr;
};

namespace {

// DType::kF64 of common/device/tensor.h, a header that nvcc does not compile.
constexpr uint8_t kF64 = 1;

struct Library {
  decltype(&ncclGetUniqueId) make_id = nullptr;
  decltype(&ncclCommInitRankConfig) join = nullptr;
  decltype(&ncclCommGetAsyncError) state = nullptr;
  decltype(&ncclCommFinalize) finish = nullptr;
  decltype(&ncclCommDestroy) destroy = nullptr;
  decltype(&ncclCommAbort) abort = nullptr;
  decltype(&ncclGetErrorString) text = nullptr;
  decltype(&ncclGroupStart) begin_group = nullptr;
  decltype(&ncclGroupEnd) end_group = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;
  decltype(&ncclReduceScatter) reduce_scatter = nullptr;
  decltype(&ncclReduce) reduce = nullptr;
  decltype(&ncclAllGather) all_gather = nullptr;
  decltype(&ncclSend) send = nullptr;
  decltype(&ncclRecv) receive = nullptr;
  CudaError why_not = nullptr;

  Library() {
    void* const file = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (file == nullptr) {
      why_not = "libnccl.so.2 cannot be loaded";
      return;
    }
    Find(file, "ncclGetUniqueId", make_id);
    Find(file, "ncclCommInitRankConfig", join);
    Find(file, "ncclCommGetAsyncError", state);
    Find(file, "ncclCommFinalize", finish);
    Find(file, "ncclCommDestroy", destroy);
    Find(file, "ncclCommAbort", abort);
    Find(file, "ncclGetErrorString", text);
    Find(file, "ncclGroupStart", begin_group);
    Find(file, "ncclGroupEnd", end_group);
    Find(file, "ncclAllReduce", all_reduce);
    Find(file, "ncclReduceScatter", reduce_scatter);
    Find(file, "ncclReduce", reduce);
    Find(file, "ncclAllGather", all_gather);
    Find(file, "ncclSend", send);
    Find(file, "ncclRecv", receive);
  }
  template <class F>
  void Find(void* file, const char* name, F& function) {
    function = reinterpret_cast<F>(dlsym(file, name));
    if (function == nullptr) why_not = "libnccl.so.2 is too old: it lacks a function";
  }
};
const Library& TheLibrary() {
  static const Library library;
  return library;
}

using dt::TextOf;
// Communicators do not block, so that their calls may still be under way.
CudaError TextOf(ncclResult_t result) {
  if (result == ncclSuccess || result == ncclInProgress) return nullptr;
  return TheLibrary().text(result);
}

ncclDataType_t TypeOf(const NcclCount& count) {
  if (count.type == kCudaF32) return ncclFloat32;
  if (count.type == kF64) return ncclFloat64;
  return count.type == kCudaBf16 ? ncclBfloat16 : ncclUint32;
}
ncclRedOp_t OpOf(bool max) { return max ? ncclMax : ncclSum; }

CudaError Load() { return TheLibrary().why_not; }

CudaError MakeId(NcclId* out) {
  static_assert(sizeof(ncclUniqueId) == sizeof(NcclId));
  ncclUniqueId id;
  const ncclResult_t result = TheLibrary().make_id(&id);
  std::memcpy(out->bytes, id.internal, sizeof id);
  return TextOf(result);
}

CudaError Join(int32_t device, int32_t ranks, int32_t rank, const NcclId* id, NcclComm** out) {
  if (CudaError e = TextOf(cudaSetDevice(device))) return e;
  ncclUniqueId unique;
  std::memcpy(unique.internal, id->bytes, sizeof unique);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  auto made = std::make_unique<NcclComm>();
  if (CudaError e = TextOf(TheLibrary().join(&made->comm, ranks, unique, rank, &config))) return e;
  *out = made.release();
  return nullptr;
}

CudaError State(NcclComm* comm, bool* busy) {
  ncclResult_t state = ncclSuccess;
  if (CudaError e = TextOf(TheLibrary().state(comm->comm, &state))) return e;
  *busy = state == ncclInProgress;
  return TextOf(state);
}

CudaError Finish(NcclComm* comm) { return TextOf(TheLibrary().finish(comm->comm)); }
void Free(NcclComm* comm) {
  TheLibrary().destroy(comm->comm);
  delete comm;
}
void Abort(NcclComm* comm) {
  TheLibrary().abort(comm->comm);
  delete comm;
}

CudaError BeginGroup() { return TextOf(TheLibrary().begin_group()); }
CudaError EndGroup() { return TextOf(TheLibrary().end_group()); }

CudaError AllReduce(NcclComm* comm, const NcclReduce& r, CudaStream* stream) {
  return TextOf(TheLibrary().all_reduce(r.in, r.out, r.count.elements, TypeOf(r.count), OpOf(r.max),
                                        comm->comm, LaunchOn(*stream)));
}
CudaError ReduceScatter(NcclComm* comm, const NcclReduce& r, CudaStream* stream) {
  return TextOf(TheLibrary().reduce_scatter(r.in, r.out, r.count.elements, TypeOf(r.count),
                                            OpOf(r.max), comm->comm, LaunchOn(*stream)));
}
CudaError Reduce(NcclComm* comm, const NcclReduce& r, int32_t root, CudaStream* stream) {
  return TextOf(TheLibrary().reduce(r.in, r.out, r.count.elements, TypeOf(r.count), OpOf(r.max),
                                    root, comm->comm, LaunchOn(*stream)));
}
CudaError AllGather(NcclComm* comm, const void* in, void* out, NcclCount count,
                    CudaStream* stream) {
  return TextOf(TheLibrary().all_gather(in, out, count.elements, TypeOf(count), comm->comm,
                                        LaunchOn(*stream)));
}
CudaError Send(NcclComm* comm, const void* in, size_t bytes, int32_t to, CudaStream* stream) {
  return TextOf(TheLibrary().send(in, bytes, ncclInt8, to, comm->comm, LaunchOn(*stream)));
}
CudaError Receive(NcclComm* comm, void* out, size_t bytes, int32_t from, CudaStream* stream) {
  return TextOf(TheLibrary().receive(out, bytes, ncclInt8, from, comm->comm, LaunchOn(*stream)));
}

}  // namespace

void FillNccl(NcclTable* table) {
  *table = {.load = Load,
            .make_id = MakeId,
            .join = Join,
            .state = State,
            .finish = Finish,
            .free = Free,
            .abort = Abort,
            .begin_group = BeginGroup,
            .end_group = EndGroup,
            .all_reduce = AllReduce,
            .reduce_scatter = ReduceScatter,
            .reduce = Reduce,
            .all_gather = AllGather,
            .send = Send,
            .receive = Receive};
}

}  // namespace dt

#else

namespace dt {

void FillNccl(NcclTable* table) {
  *table = {};
  table->load = []() -> CudaError { return "the program was built without nccl.h"; };
}

}  // namespace dt

#endif
