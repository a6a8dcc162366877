// Every allocation of this program between two points, with who made it. The program's malloc and
// its relatives are replaced (allocations.cc), so operator new and libraries come here too. Not
// with sanitizers, which replace them themselves.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dt::test {

struct Allocation {
  uint64_t bytes = 0;
  // Functions of this program from the innermost out, and names of libraries between them:
  // "libzmq". The C and C++ standard libraries count as part of their caller.
  std::vector<std::string> stack;

  // The innermost function or library.
  const std::string& by() const;
  // Made inside a library that is not ours.
  bool foreign() const { return by().starts_with("lib"); }
  bool Within(std::string_view function) const;  // Part of a name somewhere in the stack.
};

// Both may be called on any thread. Between them an allocation takes microseconds.
void BeginAllocations();
void EndAllocations();
// Of the time between them; those beyond a fixed number are only counted.
std::vector<Allocation> TakeAllocations();
uint64_t AllocationsNotKept();

}  // namespace dt::test
