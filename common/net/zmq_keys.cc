#include "common/net/zmq_keys.h"

#include <array>

#include <zmq.h>

#include "common/base/check.h"

namespace dt {
namespace {

constexpr size_t kTextSize = 40;
constexpr size_t kByteCount = 32;

}  // namespace

KeyPair MakeKeyPair() {
  std::array<char, kTextSize + 1> public_text{}, secret_text{};
  DT_CHECK_MSG(zmq_curve_keypair(public_text.data(), secret_text.data()) == 0,
               "this ZeroMQ is built without CURVE: {}", zmq_strerror(zmq_errno()));
  return {public_text.data(), secret_text.data()};
}

bool IsKey(const std::string& text) {
  std::array<uint8_t, kByteCount> bytes{};
  return text.size() == kTextSize && zmq_z85_decode(bytes.data(), text.c_str()) != nullptr;
}

std::string PublicKeyOf(const std::string& secret_key) {
  std::array<char, kTextSize + 1> public_text{};
  DT_CHECK(zmq_curve_public(public_text.data(), secret_key.c_str()) == 0);
  return public_text.data();
}

}  // namespace dt
