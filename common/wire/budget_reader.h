// Reads verified FlatBuffers into our own structs. A FlatBuffer may contain one string or vector
// and point to it many times, and an empty table of four bytes becomes a struct of a hundred bytes,
// so a small message could decode to a huge one. Therefore all memory is counted, before it is
// allocated, against a budget of kMemoryPerByte times the message's size. Messages of our own
// encoders stay within it.
//
// Once `ok` is false, the values read so far are meaningless, and reading ends soon.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include <flatbuffers/flatbuffers.h>

namespace dt {

class BudgetReader {
 public:
  // Bytes of memory allowed for each byte of a message. The worst struct, the report of a table
  // without a name, needs 6.
  static constexpr size_t kMemoryPerByte = 8;

  explicit BudgetReader(size_t message_bytes) : budget_(kMemoryPerByte * message_bytes) {}

  bool ok() const { return ok_; }
  bool Require(bool condition) {
    ok_ = ok_ && condition;
    return ok_;
  }
  // Takes memory from the budget. If the budget is exceeded, this and `ok` are false from then on.
  bool Charge(size_t count, size_t bytes_each) {
    if (!Require(count <= budget_ / bytes_each)) return false;
    budget_ -= count * bytes_each;
    return true;
  }

  // Absent fields read as empty.
  std::string Text(const flatbuffers::String* text) {
    if (text == nullptr || !Charge(text->size(), 1)) return {};
    return text->str();
  }
  std::string Bytes(const flatbuffers::Vector<uint8_t>* bytes) {
    if (bytes == nullptr || bytes->size() == 0 || !Charge(bytes->size(), 1)) return {};
    return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
  }
  // The numbers need not be aligned.
  template <class T>
  std::vector<T> Numbers(const flatbuffers::Vector<T>* from) {
    if (from == nullptr || from->size() == 0 || !Charge(from->size(), sizeof(T))) return {};
    std::vector<T> to(from->size());
    std::memcpy(to.data(), from->Data(), to.size() * sizeof(T));
    return to;
  }
  // Reads an enumeration whose last value is `last`.
  template <class Enum>
  Enum Code(uint32_t value, Enum last) {
    return Require(value <= static_cast<uint32_t>(last)) ? static_cast<Enum>(value) : last;
  }

 private:
  size_t budget_;
  bool ok_ = true;
};

}  // namespace dt
