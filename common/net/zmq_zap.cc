#include "common/net/zmq_zap.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/memory_end.h"
#include "common/base/thread_name.h"

namespace dt {
namespace {

constexpr char kEndpoint[] = "inproc://zeromq.zap.01";  // Fixed by the protocol.
constexpr char kVersion[] = "1.0";
constexpr size_t kKeyBytes = 32;
// The parts of a request: version, id, domain, address, identity, mechanism, credentials.
enum Field : size_t { kId = 1, kDomain = 2, kAddress = 3, kMechanism = 5, kCredentials = 6 };

std::string TextOfKey(const std::string& bytes) {
  if (bytes.size() != kKeyBytes) return "";
  std::array<char, 41> text{};
  const char* const made =
      zmq_z85_encode(text.data(), reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  return made == nullptr ? "" : made;
}

// All parts of a message. Throws when the context ends.
std::vector<std::string> TakeAll(zmq::socket_t& socket) {
  std::vector<std::string> parts;
  zmq::message_t part;
  do {
    static_cast<void>(socket.recv(part));
    parts.push_back(part.to_string());
  } while (part.more());
  return parts;
}

void SendAll(zmq::socket_t& socket, const std::vector<std::string>& parts) {
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool last = i + 1 == parts.size();
    socket.send(zmq::buffer(parts[i]), last ? zmq::send_flags::none : zmq::send_flags::sndmore);
  }
}

}  // namespace

ZapHandler::ZapHandler(zmq::context_t& context, std::set<std::string> allowed_keys)
    : allowed_keys_(std::move(allowed_keys)), socket_(context, zmq::socket_type::rep) {
  socket_.set(zmq::sockopt::linger, 0);
  socket_.bind(kEndpoint);
  thread_ = std::jthread([this] { Run(); });
}

void ZapHandler::Run() {
  NameThread("access-keys");
  for (;;) {
    try {
      AnswerOne();
    } catch (const zmq::error_t& error) {
      if (error.num() == EINTR) continue;
      if (error.num() == ENOMEM) EndOutOfMemory(sizeof(zmq::message_t), "a request to connect");
      DT_CHECK_MSG(error.num() == ETERM, "the check of keys ends: {}", error.what());
      socket_.close();
      return;
    }
  }
}

void ZapHandler::AnswerOne() {
  std::vector<std::string> request = TakeAll(socket_);
  request.resize(std::max<size_t>(request.size(), kCredentials + 1));
  const bool allowed = request[kDomain] == kZapDomain && request[kMechanism] == "CURVE" &&
                       allowed_keys_.contains(TextOfKey(request[kCredentials]));
  if (!allowed) LogRefusal(request[kAddress]);
  SendAll(socket_, {kVersion, request[kId], allowed ? "200" : "400",
                    allowed ? "" : "this key is not known here", "", ""});
}

void ZapHandler::LogRefusal(const std::string& address) {
  if (!refused_.Count(SystemClock().Now())) return;
  LogWarn("net.refused", {{"address", address},
                          {"why", "its key may not connect"},
                          {"refused_so_far", refused_.so_far()}});
}

}  // namespace dt
