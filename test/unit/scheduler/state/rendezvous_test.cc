#include "scheduler/state/rendezvous.h"

#include <gtest/gtest.h>

namespace dt::scheduler {
namespace {

class RendezvousTest : public ::testing::Test {
 protected:
  RendezvousRecord record_;
  Rendezvous rendezvous_{record_};
};

TEST_F(RendezvousTest, AValueThatIsThereIsGivenAtOnce) {
  EXPECT_TRUE(rendezvous_.Put({"k", "v"})->empty());
  const auto answers = rendezvous_.Get(Incarnation(1), {"k"});
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].message.value, "v");
}

TEST_F(RendezvousTest, AllWhoWaitGetTheValueOnce) {
  for (uint64_t id : {1, 2, 2}) EXPECT_TRUE(rendezvous_.Get(Incarnation(id), {"k"}).empty());
  EXPECT_TRUE(rendezvous_.Put({"other", "v"})->empty());
  EXPECT_EQ(rendezvous_.Put({"k", "v"})->size(), 2u);
  EXPECT_TRUE(rendezvous_.Put({"k", "w"})->empty());
  EXPECT_EQ(rendezvous_.Get(Incarnation(3), {"k"})[0].message.value, "w");
}

TEST_F(RendezvousTest, WhatIsLeftForOthersIsBounded) {
  const std::string large(100 << 20, ' ');
  EXPECT_TRUE(rendezvous_.Put({"a", large}).ok());
  EXPECT_TRUE(rendezvous_.Put({"b", large}).ok());
  EXPECT_EQ(rendezvous_.Put({"c", large}).status().code(), StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace dt::scheduler
