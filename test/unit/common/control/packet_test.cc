#include "common/control/packet.h"

#include <gtest/gtest.h>

namespace dt {
namespace {

TEST(Packet, ComesBackAsItWas) {
  for (const std::string& payload : {std::string(), std::string("a\0b", 3)}) {
    const Packet packet{~0ull, 2, 3, payload, 7, 8, payload.empty()};
    const Result<Packet> back = DecodePacket(EncodePacket(packet));
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(back->session, packet.session);
    EXPECT_EQ(back->sequence, 2u);
    EXPECT_EQ(back->ack, 3u);
    EXPECT_EQ(back->payload, payload);
    EXPECT_EQ(back->number, 7u);
    EXPECT_EQ(back->term, 8u);
    EXPECT_EQ(back->unknown, payload.empty());
  }
}

TEST(Packet, EachSessionHasItsLimit) {
  const PayloadLimit limit = [](uint64_t session) -> size_t { return session == 1 ? 3 : 2; };
  EXPECT_TRUE(DecodePacket(EncodePacket({1, 2, 3, "xyz"}), limit).ok());
  EXPECT_FALSE(DecodePacket(EncodePacket({2, 2, 3, "xyz"}), limit).ok());
}

TEST(Packet, OtherBytesAreMalformed) {
  const Frames good = EncodePacket({1, 2, 3, "x"});
  for (size_t size = 0; size < 48; ++size) {
    Frames cut;
    cut.push_back(Frame::CopyOf(good[0].bytes().first(size)));
    EXPECT_FALSE(DecodePacket(cut).ok()) << size;
  }
  Frames other;
  other.push_back(Frame::CopyOf(good[0].bytes()));
  other[0].bytes()[0] ^= std::byte{1};
  EXPECT_FALSE(DecodePacket(other).ok());
  EXPECT_FALSE(DecodePacket({}).ok());
  Frames two = EncodePacket({1, 2, 3, "x"});
  two.push_back(Frame::CopyOf({}));
  EXPECT_FALSE(DecodePacket(two).ok());
}

}  // namespace
}  // namespace dt
