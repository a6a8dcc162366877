// Hand-made clients of shared memory: the layout is that of shm_segment.h; the memory, the greeting
// and the content of the rings are the attacker's. Well-formed requests have the stamp of no job,
// or only read rows as everybody may; so no request is ever applied.
#include <array>
#include <cstring>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

#include "common/net/shm/shm_arena.h"
#include "common/net/shm/shm_segment.h"
#include "test/hostile/attack.h"
#include "test/hostile/raw_socket.h"

namespace dt::test {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kAnswer{5};
constexpr size_t kTouched = 1 << 20;  // These attacks write only to the start of the arena.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;

std::string Greeting() { return {"dovetail shm 1\n", 16}; }

class Memory {
 public:
  explicit Memory(size_t bytes, int seals = kSeals, unsigned flags = 0)
      : fd_(memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags)) {
    if (ftruncate(fd_, static_cast<off_t>(bytes)) == 0) fcntl(fd_, F_ADD_SEALS, seals);
  }
  explicit Memory(int fd) : fd_(fd) {}
  ~Memory() {
    if (bytes_ != nullptr) munmap(bytes_, size_);
    if (fd_ >= 0) close(fd_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  int fd() const { return fd_; }
  std::byte* Map(size_t bytes) {
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (memory == MAP_FAILED) return nullptr;
    bytes_ = static_cast<std::byte*>(memory);
    size_ = bytes;
    return bytes_;
  }

 private:
  int fd_;
  std::byte* bytes_ = nullptr;
  size_t size_ = 0;
};

// A client that has sent a correct greeting.
class Guest {
 public:
  Guest(Random& random, const Targets& targets)
      : socket_(RawSocket::Abstract(OneOf(targets.names, random))),
        shared_(reinterpret_cast<ShmSegment*>(segment_.Map(sizeof(ShmSegment)))),
        arena_bytes_(arena_.Map(kTouched)) {
    greeted_ = shared_ != nullptr && arena_bytes_ != nullptr &&
               socket_.SendWith(Greeting(), std::array{segment_.fd(), arena_.fd()});
  }
  bool greeted() const { return greeted_; }
  RawSocket& socket() { return socket_; }
  ShmRing& ring() { return shared_->to_server; }
  ShmSegment& shared() { return *shared_; }
  std::byte* arena() { return arena_bytes_; }

  void Append(const void* bytes, size_t size) {
    if (at_ + size > kShmRingBytes) return;
    std::memcpy(ring().bytes + at_, bytes, size);
    at_ += size;
  }
  // Makes the appended bytes visible to the server.
  void Publish() {
    ring().tail.store(at_);
    socket_.Send("!", milliseconds(1));
  }
  // Writes a message as our clients do, with its large parts in the arena from offset `place` on.
  void Write(const std::vector<std::string>& parts, size_t place = 0) {
    std::vector<ShmPartHead> heads;
    std::string inside;
    for (const std::string& part : parts) {
      ShmPartHead head{.size = part.size()};
      if (part.size() <= kShmInlineBytesMax) {
        inside += part + std::string((8 - part.size() % 8) % 8, '\0');
      } else if (place + part.size() <= kTouched) {
        std::memcpy(arena_bytes_ + place, part.data(), part.size());
        head.offset = place;
        place += (part.size() + 63) / 64 * 64;
        head.slot = static_cast<uint32_t>(heads.size());
        head.lease = 1;
      }
      heads.push_back(head);
    }
    const size_t bytes = sizeof(ShmRecordHead) + heads.size() * sizeof(ShmPartHead) + inside.size();
    const ShmRecordHead record{static_cast<uint32_t>(bytes), static_cast<uint32_t>(heads.size())};
    Append(&record, sizeof(record));
    Append(heads.data(), heads.size() * sizeof(ShmPartHead));
    Append(inside.data(), inside.size());
    Publish();
  }

 private:
  RawSocket socket_;
  Memory segment_{sizeof(ShmSegment)}, arena_{kArenaBytes};
  ShmSegment* shared_;
  std::byte* arena_bytes_;
  bool greeted_ = false;
  size_t at_ = 0;
};

std::vector<std::string> PartsOf(const Frames& frames) {
  std::vector<std::string> parts;
  for (const Frame& frame : frames) {
    const auto bytes = frame.as<char>();
    parts.emplace_back(bytes.begin(), bytes.end());
  }
  return parts;
}

// ------------------------------------------------------------ greetings

void SaysNothing(Random& random, const Targets& targets) {
  RawSocket::Abstract(OneOf(targets.names, random)).Receive(kAnswer);
}

void SaysAnything(Random& random, const Targets& targets) {
  RawSocket socket = RawSocket::Abstract(OneOf(targets.names, random));
  const std::string text =
      random() % 2 == 0 ? RandomBytes(random, 1 + random() % 4096) : Damaged(Greeting(), random);
  socket.SendWith(text, {});
  socket.Receive(kAnswer);
}

void GreetsWithout(Random& random, const Targets& targets) {
  RawSocket socket = RawSocket::Abstract(OneOf(targets.names, random));
  const Memory segment(sizeof(ShmSegment));
  const std::array<int, 4> fds = {segment.fd(), segment.fd(), segment.fd(), segment.fd()};
  socket.SendWith(Greeting(), std::span(fds).first(random() % 2 == 0 ? random() % 2 : 3));
  socket.Receive(kAnswer);
}

// Sends descriptors that are not memory, or memory that could be truncated under a reader, and a
// message that refers to it.
void GreetsWithWrongMemory(Random& random, const Targets& targets) {
  RawSocket socket = RawSocket::Abstract(OneOf(targets.names, random));
  Memory segment(sizeof(ShmSegment));
  const Memory arena(kArenaBytes);
  const Memory wrong[] = {Memory(open("/dev/zero", O_RDWR | O_CLOEXEC)),
                          Memory(open("/proc/self/maps", O_RDONLY | O_CLOEXEC)),
                          Memory(open("/", O_RDONLY | O_CLOEXEC)),
                          Memory(eventfd(0, EFD_CLOEXEC)),
                          Memory(dup(socket.fd())),
                          Memory(kArenaBytes, 0),
                          Memory(sizeof(ShmSegment), F_SEAL_GROW),
                          Memory(sizeof(ShmSegment), kSeals | F_SEAL_WRITE),
                          Memory(4096),
                          Memory(size_t{0}),
                          Memory(kArenaBytes + 4096),
                          Memory(kArenaBytes, kSeals, MFD_HUGETLB),
                          Memory(size_t{2} << 20, kSeals, MFD_HUGETLB)};
  const int other = wrong[random() % std::size(wrong)].fd();
  auto* const shared = reinterpret_cast<ShmSegment*>(segment.Map(sizeof(ShmSegment)));
  if (other < 0 || shared == nullptr) return;  // This system has no such descriptor.
  const struct {
    ShmRecordHead record{sizeof(ShmRecordHead) + sizeof(ShmPartHead), 1};
    ShmPartHead part{5000, 0};
  } message;
  std::memcpy(shared->to_server.bytes, &message, sizeof(message));
  shared->to_server.tail.store(sizeof(message));
  const bool first = random() % 4 == 0;
  socket.SendWith(Greeting(),
                  first ? std::array{other, arena.fd()} : std::array{segment.fd(), other});
  socket.Receive(kAnswer);
  if (random() % 2 == 0 && ftruncate(other, 0) == 0) socket.Send("!");
  socket.Receive(kAnswer);
}

void ConnectsManyTimes(Random& random, const Targets& targets) {
  std::vector<RawSocket> held;
  const std::string name = OneOf(targets.names, random);
  for (int i = 0; i < 150; ++i) held.push_back(RawSocket::Abstract(name));
  held.back().Receive(kAnswer);
}

// ------------------------------------------------------------ rings

void WritesAnything(Random& random, const Targets& targets) {
  Guest guest(random, targets);
  if (!guest.greeted()) return;
  const size_t size = 8 * (1 + random() % 512);
  std::string bytes = RandomBytes(random, size);
  for (char& b : bytes) b = random() % 4 == 0 ? b : '\0';
  guest.Append(bytes.data(), size);
  const ShmRecordHead head{static_cast<uint32_t>(8 * (random() % 64)),
                           static_cast<uint32_t>(random() % 4)};
  std::memcpy(guest.ring().bytes, &head, sizeof(head));
  guest.ring().tail.store(random() % 4 == 0 ? random() : size);
  guest.socket().Send("!");
  guest.socket().Receive(kAnswer);
}

void LiesAboutItsRings(Random& random, const Targets& targets) {
  Guest guest(random, targets);
  if (!guest.greeted()) return;
  guest.Write({RandomBytes(random, 200)});
  for (int i = 0; i < 50; ++i) {
    guest.shared().to_client.head.store(random());
    guest.shared().to_server.tail.store(random() % 3 == 0 ? random() : random() % 4096 * 8);
    guest.shared().to_client.waiting.store(static_cast<uint32_t>(random()));
    guest.shared().to_server.closed.store(static_cast<uint32_t>(random() % 2));
    for (int k = 0; k < 20; ++k) {
      guest.shared().to_client.released[random() % kShmSlots].store(
          static_cast<uint32_t>(random()));
    }
    guest.socket().Send("!", milliseconds(1));
  }
}

void PointsAnywhere(Random& random, const Targets& targets) {
  static const uint64_t places[] = {0,       8, 4, kArenaBytes - 8, kArenaBytes, ~uint64_t{0} - 7,
                                    kTouched};
  Guest guest(random, targets);
  if (!guest.greeted()) return;
  for (int i = 0; i < 8; ++i) {
    const ShmRecordHead record{sizeof(ShmRecordHead) + 2 * sizeof(ShmPartHead), 2};
    ShmPartHead parts[2];
    for (ShmPartHead& part : parts) {
      part = {random() % 3 == 0 ? random() : random() % 100'000,
              places[random() % std::size(places)], static_cast<uint32_t>(random() % 5000),
              static_cast<uint32_t>(random())};
    }
    guest.Append(&record, sizeof(record));
    guest.Append(parts, sizeof(parts));
  }
  guest.Publish();
  guest.socket().Receive(kAnswer);
}

// Signals the server again and again, and never reads an answer.
void RingsAllTheTime(Random& random, const Targets& targets) {
  Guest guest(random, targets);
  for (int i = 0; i < 200 && guest.greeted(); ++i) {
    guest.Write({RandomBytes(random, 8 + random() % 64)});
  }
}

// ------------------------------------------------------------ messages

void SendsDamagedRequests(Random& random, const Targets& targets) {
  Guest guest(random, targets);
  for (int i = 0; i < 10 && guest.greeted(); ++i) {
    std::vector<std::string> parts = PartsOf(StaleRequest(random, random() % 20));
    std::string& part = parts[random() % parts.size()];
    part = Damaged(part, random);
    if (random() % 8 == 0) parts.pop_back();
    if (random() % 8 == 0) parts.push_back(RandomBytes(random, 8));
    if (!parts.empty()) guest.Write(parts, random() % 1000 * 8);
  }
  guest.socket().Receive(kAnswer);
}

// Reads rows of the first step, as everybody may, and changes the keys of the request all the time.
void ChangesWhatItHasSent(Random& random, const Targets& targets) {
  Guest guest(random, targets);
  if (!guest.greeted()) return;
  std::vector<std::vector<std::string>> requests;
  for (int i = 0; i < 8; ++i) {
    requests.push_back(
        PartsOf(i % 2 == 0 ? Encode(FirstRows(random, 300)) : StaleRequest(random, 300)));
  }
  const uint64_t seed = random();
  std::jthread changes([&guest, seed](const std::stop_token& stop) {
    Random own(seed);
    while (!stop.stop_requested()) {
      const uint64_t value = own();
      std::memcpy(guest.arena() + own() % (kTouched / 8) * 8, &value, sizeof(value));
    }
  });
  for (size_t i = 0; i < requests.size(); ++i) {
    guest.Write(requests[i], i * (kTouched / 8));
    guest.socket().Receive(kAnswer);
  }
}

constexpr Attack kAttacks[] = {
    {"says nothing", SaysNothing},
    {"says anything", SaysAnything},
    {"greets without memory", GreetsWithout},
    {"greets with wrong memory", GreetsWithWrongMemory},
    {"connects many times", ConnectsManyTimes},
    {"writes anything", WritesAnything},
    {"lies about its rings", LiesAboutItsRings},
    {"points anywhere", PointsAnywhere},
    {"rings all the time", RingsAllTheTime},
    {"sends damaged requests", SendsDamagedRequests},
    {"changes what it has sent", ChangesWhatItHasSent},
};

}  // namespace

std::span<const Attack> ShmAttacks() { return kAttacks; }

}  // namespace dt::test
