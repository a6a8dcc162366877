// Messages of a peer with the job's keys, through the program's own sockets: the framing is right,
// the content is wrong. Sessions are random numbers, so none of them is a member's.
#include "common/control/packet.h"
#include "test/hostile/attack.h"
#include "test/unit/common/control/message_samples.h"

namespace dt::test {
namespace {

constexpr Duration kAnswer = milliseconds(20);

class Member {
 public:
  Member(Random& random, const Targets& targets) {
    auto socket =
        targets.network->Connect("tcp://127.0.0.1:" + std::to_string(OneOf(targets.ports, random)));
    if (socket.ok()) socket_ = *std::move(socket);
  }
  // Gives messages time to leave before the connection is closed.
  ~Member() {
    for (int i = 0; i < 8 && socket_ != nullptr; ++i) {
      if (!socket_->Receive(kAnswer).ok()) return;
    }
  }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  void Say(Frames frames) {
    if (socket_ != nullptr && !frames.empty()) socket_->Send(std::move(frames)).IgnoreError();
  }

 private:
  std::unique_ptr<ClientSocket> socket_;
};

Frame FrameOf(const std::string& bytes) { return Frame::CopyOf(std::as_bytes(std::span(bytes))); }

std::string TextOf(const Frame& frame) {
  const auto bytes = frame.as<char>();
  return {bytes.begin(), bytes.end()};
}

std::string Sample(Random& random) { return EncodeControl(OneOf(ControlSamples(), random)); }

void AsksForTheStatus(Random& random, const Targets& targets) {
  Member member(random, targets);
  for (int i = 0; i < 50; ++i) {
    member.Say(EncodePacket({random(), 1, random() % 3, EncodeControl(StatusRequestMessage{})}));
  }
}

void SendsMessagesOfOthers(Random& random, const Targets& targets) {
  Member member(random, targets);
  const uint64_t session = random();
  for (uint64_t i = 1; i < 20; ++i) {
    member.Say(EncodePacket(
        {session, random() % 2 == 0 ? i : random() % 5, random() % 30, Sample(random)}));
  }
}

void SendsDamagedControlMessages(Random& random, const Targets& targets) {
  Member member(random, targets);
  for (int i = 0; i < 20; ++i) {
    member.Say(
        EncodePacket({random(), random() % 2, random() % 2, Damaged(Sample(random), random)}));
  }
}

void SendsDamagedPackets(Random& random, const Targets& targets) {
  Member member(random, targets);
  for (int i = 0; i < 20; ++i) {
    Frames frames = EncodePacket({random(), random() % 3, 0, Sample(random)});
    frames[0] = FrameOf(Damaged(TextOf(frames[0]), random));
    if (random() % 4 == 0) frames.push_back(FrameOf(RandomBytes(random, random() % 100)));
    member.Say(std::move(frames));
  }
}

void JoinsAsWhatItIsNot(Random& random, const Targets& targets) {
  Member member(random, targets);
  JoinMessage join{.role = static_cast<Role>(random() % 3),
                   .incarnation = Incarnation(random()),
                   .wire_version = static_cast<uint32_t>(random() % 9),
                   .version = RandomBytes(random, random() % 50),
                   .pid = static_cast<int64_t>(random()),
                   .host = RandomBytes(random, random() % 300),
                   .job_fingerprint = random(),
                   .server_token = random() % 3};
  for (uint64_t i = random() % 50; i > 0; --i) join.endpoints.push_back("tcp://127.0.0.1:1");
  member.Say(EncodePacket({random(), 1, 0, EncodeControl(join)}));
}

void SendsDamagedRequests(Random& random, const Targets& targets) {
  Member member(random, targets);
  for (int i = 0; i < 20; ++i) {
    Frames frames = StaleRequest(random, random() % 50);
    Frame& frame = frames[random() % frames.size()];
    if (random() % 8 != 0) frame = FrameOf(Damaged(TextOf(frame), random));
    if (random() % 8 == 0) frames.pop_back();
    member.Say(std::move(frames));
  }
}

void ReadsRows(Random& random, const Targets& targets) {
  Member member(random, targets);
  for (int i = 0; i < 20; ++i) member.Say(Encode(FirstRows(random, random() % 100)));
}

constexpr Attack kAttacks[] = {
    {"asks for the status", AsksForTheStatus},
    {"sends messages of others", SendsMessagesOfOthers},
    {"sends damaged control messages", SendsDamagedControlMessages},
    {"sends damaged packets", SendsDamagedPackets},
    {"joins as what it is not", JoinsAsWhatItIsNot},
    {"sends damaged requests", SendsDamagedRequests},
    {"reads rows", ReadsRows},
};

}  // namespace

std::span<const Attack> MemberAttacks() { return kAttacks; }

}  // namespace dt::test
