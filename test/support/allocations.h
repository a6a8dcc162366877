// Records every allocation of this program from some point in time on, with its call stack. The
// program's malloc and its relatives are replaced (allocations.cc), so operator new and libraries
// are recorded too. It does not work with sanitizers, which replace malloc themselves.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dt::test {

struct Allocation {
  uint64_t bytes = 0;
  uint32_t section = 0;  // Current when it was made; see BeginSection.
  // Functions of this program, innermost first, and names of libraries between them ("libzmq"). The
  // C and C++ standard libraries count as part of their caller.
  std::vector<std::string> stack;

  // The innermost function or library.
  const std::string& by() const;
  // True if a library other than this program made the allocation.
  bool foreign() const { return by().starts_with("lib"); }
  // `function` may be part of a name anywhere in the stack.
  bool Within(std::string_view function) const;
};

// All may be called on any thread. While allocations are recorded, each takes microseconds.
void BeginAllocations();
// Allocations from now on belong to this section; those before belong to section 0.
void BeginSection(uint32_t section);
void EndAllocations();
// Returns the recorded allocations. Those beyond a fixed number are only counted
// (AllocationsNotKept).
std::vector<Allocation> TakeAllocations();
uint64_t AllocationsNotKept();

}  // namespace dt::test
