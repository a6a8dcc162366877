#include "test/support/allocations.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>

#include <cxxabi.h>
#include <elf.h>
#include <execinfo.h>
#include <link.h>

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
}

namespace {

constexpr size_t kKept = 100'000;
constexpr int kFrames = 40;

struct Record {
  size_t bytes;
  uint32_t section;
  int depth;
  std::array<void*, kFrames> frames;
};
// Static memory, so that recording an allocation allocates nothing.
std::array<Record, kKept> records;
std::atomic<size_t> next_record{0};
std::atomic<bool> recording{false};
std::atomic<uint32_t> section_now{0};
// Guards against recursion: backtrace may allocate at its first call.
thread_local bool inside = false;

void Note(size_t bytes) {
  if (!recording.load(std::memory_order_relaxed) || inside) return;
  inside = true;
  const size_t at = next_record.fetch_add(1);
  if (at < kKept) {
    records[at].bytes = bytes;
    records[at].section = section_now.load(std::memory_order_relaxed);
    records[at].depth = backtrace(records[at].frames.data(), kFrames);
  }
  inside = false;
}

}  // namespace

// glibc's own functions under their alternative names: see "Replacing malloc" in its manual.
extern "C" {
void* malloc(size_t bytes) {
  Note(bytes);
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  Note(count * bytes);
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, size_t bytes) {
  Note(bytes);
  return __libc_realloc(memory, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  Note(bytes);
  return __libc_memalign(alignment, bytes);
}
void* memalign(size_t alignment, size_t bytes) {
  Note(bytes);
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  Note(bytes);
  *memory = __libc_memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}
}

namespace dt::test {
namespace {

// The functions of this program, including those with internal linkage.
class Functions {
 public:
  Functions() {
    std::ifstream file("/proc/self/exe", std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    const auto* const head = reinterpret_cast<const Elf64_Ehdr*>(bytes.data());
    const auto* const sections = reinterpret_cast<const Elf64_Shdr*>(bytes.data() + head->e_shoff);
    for (int s = 0; s < head->e_shnum; ++s) {
      if (sections[s].sh_type == SHT_SYMTAB)
        Read(bytes, sections[s], sections[sections[s].sh_link]);
    }
  }
  // Returns "" if no function contains the address, which is relative to the start of the program.
  std::string At(uint64_t address) const {
    auto at = functions_.upper_bound(address);
    if (at == functions_.begin()) return "";
    --at;
    return address < at->first + at->second.size ? at->second.name : "";
  }

 private:
  struct Function {
    uint64_t size = 0;
    std::string name;
  };
  static std::string Demangled(const char* symbol) {
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> name(
        abi::__cxa_demangle(symbol, nullptr, nullptr, &status), &std::free);
    return status == 0 ? name.get() : symbol;
  }
  void Read(const std::string& bytes, const Elf64_Shdr& table, const Elf64_Shdr& names) {
    const auto* const symbols = reinterpret_cast<const Elf64_Sym*>(bytes.data() + table.sh_offset);
    for (size_t i = 0; i < table.sh_size / sizeof(Elf64_Sym); ++i) {
      if (ELF64_ST_TYPE(symbols[i].st_info) != STT_FUNC || symbols[i].st_size == 0) continue;
      const char* const symbol = bytes.data() + names.sh_offset + symbols[i].st_name;
      functions_[symbols[i].st_value] = {symbols[i].st_size, Demangled(symbol)};
    }
  }
  std::map<uint64_t, Function> functions_;  // Keys are addresses.
};

// "libzmq" for "/usr/lib/…/libzmq.so.5"; "" for the standard libraries.
std::string LibraryOf(std::string_view path) {
  const std::string_view file = path.substr(path.rfind('/') + 1);
  for (const char* const standard : {"libc.", "libstdc++.", "libgcc_s.", "ld-linux", "libm."}) {
    if (file.starts_with(standard)) return "";
  }
  return std::string(file.substr(0, file.find('.')));
}

// A mapped segment of the program (first) or of a library.
struct Module {
  uintptr_t base = 0, begin = 0, end = 0;
  std::string library;
  bool is_program = false;
};
std::vector<Module> Modules() {
  std::vector<Module> modules;
  const auto add = [](dl_phdr_info* info, size_t, void* to) {
    auto& list = *static_cast<std::vector<Module>*>(to);
    const bool is_program = list.empty();
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const ElfW(Phdr)& part = info->dlpi_phdr[i];
      if (part.p_type != PT_LOAD) continue;
      const uintptr_t begin = info->dlpi_addr + part.p_vaddr;
      list.push_back(
          {info->dlpi_addr, begin, begin + part.p_memsz, LibraryOf(info->dlpi_name), is_program});
    }
    return 0;
  };
  dl_iterate_phdr(add, &modules);
  return modules;
}

// Functions between a caller and its memory, which are left out of stacks.
bool IsPassedOver(const std::string& function) {
  constexpr const char* kNames[] = {"malloc",        "calloc",   "realloc",
                                    "aligned_alloc", "memalign", "posix_memalign"};
  return function.empty() || std::ranges::find(kNames, function) != std::end(kNames) ||
         function.starts_with("(anonymous namespace)::Note") ||
         function.starts_with("operator new") || function.starts_with("std::") ||
         function.starts_with("void std::") || function.starts_with("__gnu_cxx::");
}

std::vector<std::string> StackOf(const Record& record, const Functions& functions,
                                 const std::vector<Module>& modules) {
  std::vector<std::string> stack;
  for (int i = 0; i < record.depth; ++i) {
    // The address of the call, not of the instruction that it returns to.
    const auto address = reinterpret_cast<uintptr_t>(record.frames[static_cast<size_t>(i)]) - 1;
    const auto in = std::ranges::find_if(
        modules, [&](const Module& m) { return m.begin <= address && address < m.end; });
    if (in == modules.end()) continue;
    std::string name = in->is_program ? functions.At(address - in->base) : in->library;
    if (IsPassedOver(name)) continue;
    if (stack.empty() || stack.back() != name) stack.push_back(std::move(name));
  }
  return stack;
}

}  // namespace

const std::string& Allocation::by() const {
  static const std::string kUnknown = "unknown";
  return stack.empty() ? kUnknown : stack.front();
}

bool Allocation::Within(std::string_view function) const {
  return std::ranges::any_of(
      stack, [&](const std::string& name) { return name.find(function) != std::string::npos; });
}

void BeginAllocations() {
  std::array<void*, 2> frames;
  backtrace(frames.data(), 2);  // The first call loads the libraries that backtrace needs.
  next_record = 0;
  section_now = 0;
  recording = true;
}

void BeginSection(uint32_t section) { section_now = section; }

void EndAllocations() { recording = false; }

std::vector<Allocation> TakeAllocations() {
  const Functions functions;
  const std::vector<Module> modules = Modules();
  std::vector<Allocation> allocations;
  const size_t kept = std::min(next_record.load(), kKept);
  for (size_t i = 0; i < kept; ++i) {
    const Record& record = records[i];
    allocations.push_back({record.bytes, record.section, StackOf(record, functions, modules)});
  }
  return allocations;
}

uint64_t AllocationsNotKept() { return next_record - std::min(next_record.load(), kKept); }

}  // namespace dt::test
