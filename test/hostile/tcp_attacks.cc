// ZMTP 3.1 (rfc.zeromq.org/spec/23) written by hand, both valid and invalid: these bytes reach
// ZeroMQ's engine before any code of ours sees a message.
#include "test/hostile/attack.h"
#include "test/hostile/raw_socket.h"

namespace dt::test {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kAnswer{20};
constexpr uint8_t kMore = 1, kLong = 2, kCommand = 4;

std::string BigEndian(uint64_t value, size_t bytes) {
  std::string text;
  for (size_t i = bytes; i-- > 0;) text += static_cast<char>(value >> (8 * i));
  return text;
}

// signature 10 | version 2 | mechanism 20 | as-server 1 | filler 31
std::string Greeting(const std::string& mechanism = "NULL", char major = 3, char minor = 1) {
  std::string text("\xff\0\0\0\0\0\0\0\x01\x7f", 10);
  text += major;
  text += minor;
  std::string padded = mechanism;
  padded.resize(20);
  return text + padded + std::string(32, '\0');
}

std::string FrameHead(uint8_t flags, uint64_t size) {
  const bool wide = size > 255 || (flags & kLong) != 0;
  std::string text(1, static_cast<char>(wide ? flags | kLong : flags & ~kLong));
  return text + BigEndian(size, wide ? 8 : 1);
}
std::string FrameOf(uint8_t flags, const std::string& body) {
  return FrameHead(flags, body.size()) + body;
}
std::string CommandOf(const std::string& name, const std::string& body) {
  return FrameOf(kCommand, static_cast<char>(name.size()) + name + body);
}
std::string Property(const std::string& name, const std::string& value) {
  return static_cast<char>(name.size()) + name + BigEndian(value.size(), 4) + value;
}
std::string Ready(const std::string& identity) {
  return CommandOf("READY", Property("Socket-Type", "DEALER") + Property("Identity", identity));
}

RawSocket Connect(Random& random, const Targets& targets) {
  return RawSocket::Tcp(OneOf(targets.ports, random));
}
// A connection after the NULL handshake, where that mechanism is allowed.
RawSocket Member(Random& random, const Targets& targets, const std::string& identity = "") {
  RawSocket socket = Connect(random, targets);
  socket.Send(Greeting());
  socket.Receive(kAnswer);
  socket.Send(Ready(identity));
  socket.Receive(kAnswer);
  return socket;
}

void SaysNothing(Random& random, const Targets& targets) { Connect(random, targets).Receive({}); }

void SaysAnything(Random& random, const Targets& targets) {
  Connect(random, targets).Send(RandomBytes(random, 1 + random() % 4096));
}

void SpeaksHttp(Random& random, const Targets& targets) {
  RawSocket socket = Connect(random, targets);
  socket.Send(
      Damaged("GET /status?x=1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n", random));
  socket.Receive(kAnswer);
}

void SendsHeadersWithoutEnd(Random& random, const Targets& targets) {
  RawSocket socket = Connect(random, targets);
  bool open = socket.Send("GET / HTTP/1.1\r\n");
  for (int i = 0; i < 200 && open; ++i) {
    open = socket.Send("X: " + std::string(random() % 2000, 'x') + "\r\n", milliseconds(2));
  }
}

void GreetsWrongly(Random& random, const Targets& targets) {
  static const char* const mechanisms[] = {
      "NULL", "PLAIN", "CURVE", "GSSAPI", "", "null", "NULLNULLNULLNULLNULL"};
  RawSocket socket = Connect(random, targets);
  const std::string right = Greeting(mechanisms[random() % 7], static_cast<char>(random() % 5),
                                     static_cast<char>(random() % 4));
  socket.Send(random() % 2 == 0 ? right : Damaged(right, random));
  socket.Receive(kAnswer);
  socket.Send(Ready(""));
  socket.Receive(kAnswer);
}

void GreetsSlowly(Random& random, const Targets& targets) {
  RawSocket socket = Connect(random, targets);
  const std::string greeting = Greeting();
  for (size_t i = 0; i < random() % greeting.size(); ++i) {
    if (!socket.Send(greeting.substr(i, 1), milliseconds(2))) return;
  }
}

void HasDamagedProperties(Random& random, const Targets& targets) {
  RawSocket socket = Connect(random, targets);
  socket.Send(Greeting());
  socket.Receive(kAnswer);
  std::string body = Property("Socket-Type", random() % 2 == 0 ? "DEALER" : "PUB") +
                     Property("Identity", RandomBytes(random, random() % 400));
  if (random() % 2 == 0) body = Property("Socket-Type", "DEALER") + "\x08Identity\xff\xff\xff\xff";
  const std::string ready = CommandOf("READY", body);
  socket.Send(random() % 2 == 0 ? ready : Damaged(ready, random));
  socket.Receive(kAnswer);
}

// Claims one of the first routing ids that ZeroMQ assigns to peers without one.
void TakesAnothersIdentity(Random& random, const Targets& targets) {
  const auto id = static_cast<uint32_t>(0x6b8b4567 + random() % 16);
  RawSocket first = Member(random, targets, std::string(1, '\0') + BigEndian(id, 4));
  RawSocket second = Member(random, targets, std::string(1, '\0') + BigEndian(id, 4));
  second.Send(FrameOf(0, RandomBytes(random, 64)));
}

void AnnouncesHugeParts(Random& random, const Targets& targets) {
  static const uint64_t sizes[] = {
      ~uint64_t{0},      uint64_t{1} << 63,       (uint64_t{1} << 63) - 1,
      uint64_t{1} << 31, (uint64_t{1} << 30) + 1, uint64_t{1} << 30,
      uint64_t{64} << 20};
  RawSocket socket = Member(random, targets);
  socket.Send(FrameHead(static_cast<uint8_t>(random() % 2 == 0 ? 0 : kCommand | kMore),
                        sizes[random() % std::size(sizes)]));
  socket.Send(RandomBytes(random, random() % 2000));
  socket.Receive(kAnswer);
}

void SendsPartsWithoutEnd(Random& random, const Targets& targets) {
  RawSocket socket = Member(random, targets);
  std::string parts;
  const size_t bytes = random() % 64;
  for (int i = 0; i < 2000; ++i) parts += FrameOf(kMore, std::string(bytes, 'm'));
  for (int i = 0; i < 10; ++i) {
    if (!socket.Send(parts, milliseconds(10))) return;
  }
}

void SendsWrongFlagsAndCommands(Random& random, const Targets& targets) {
  static const char* const names[] = {"PING",      "PONG", "READY",   "ERROR",
                                      "SUBSCRIBE", "JOIN", "MESSAGE", "?"};
  RawSocket socket = Member(random, targets);
  for (int i = 0; i < 20; ++i) {
    const std::string body = RandomBytes(random, random() % 300);
    const std::string what = random() % 2 == 0 ? CommandOf(names[random() % std::size(names)], body)
                                               : FrameOf(static_cast<uint8_t>(random()), body);
    if (!socket.Send(random() % 4 == 0 ? Damaged(what, random) : what)) return;
  }
  socket.Receive(kAnswer);
}

void SendsMessagesOfNoMeaning(Random& random, const Targets& targets) {
  RawSocket socket = Member(random, targets, RandomBytes(random, 1 + random() % 8));
  for (int i = 0; i < 20; ++i) {
    std::string message;
    for (uint64_t parts = random() % 4; parts > 0; --parts) {
      message += FrameOf(kMore, RandomBytes(random, random() % 500));
    }
    if (!socket.Send(message + FrameOf(0, RandomBytes(random, random() % 2000)))) return;
  }
  socket.Receive(kAnswer);
}

void ConnectsManyTimes(Random& random, const Targets& targets) {
  std::vector<RawSocket> held;
  const uint16_t port = OneOf(targets.ports, random);
  const bool greets = random() % 2 == 0;
  for (int i = 0; i < 150; ++i) {
    held.push_back(RawSocket::Tcp(port));
    if (greets) held.back().Send(Greeting(), milliseconds(1));
  }
}

constexpr Attack kAttacks[] = {
    {"says nothing", SaysNothing},
    {"says anything", SaysAnything},
    {"speaks http", SpeaksHttp},
    {"sends headers without end", SendsHeadersWithoutEnd},
    {"greets wrongly", GreetsWrongly},
    {"greets slowly", GreetsSlowly},
    {"has damaged properties", HasDamagedProperties},
    {"takes another's identity", TakesAnothersIdentity},
    {"announces huge parts", AnnouncesHugeParts},
    {"sends parts without end", SendsPartsWithoutEnd},
    {"sends wrong flags and commands", SendsWrongFlagsAndCommands},
    {"sends messages of no meaning", SendsMessagesOfNoMeaning},
    {"connects many times", ConnectsManyTimes},
};

}  // namespace

std::span<const Attack> TcpAttacks() { return kAttacks; }

}  // namespace dt::test
