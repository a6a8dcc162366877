// Goal: which processes are admitted, and what is logged about the others.
#include "scheduler/elastic/admission.h"

#include <gtest/gtest.h>

#include "test/unit/scheduler/job/job_parts.h"

namespace dt::scheduler {
namespace {

using Names = std::vector<std::string>;

class AdmissionTest : public ::testing::Test {
 protected:
  JobParts job_;
  Admission admission_{job_.context};
};

TEST_F(AdmissionTest, ANewMemberIsWelcomedAndTold) {
  admission_.Join({}, job_.Joiner(Role::kWorker, 1));
  EXPECT_EQ(job_.NamesSentTo(1), Names{"Welcome"});
  EXPECT_EQ(job_.EventKinds(), Names{"worker_joined"});
}

TEST_F(AdmissionTest, AMemberThatAsksAgainIsWelcomedAgain) {
  for (int i = 0; i < 2; ++i) admission_.Join({}, job_.Joiner(Role::kWorker, 1));
  EXPECT_EQ(job_.NamesSentTo(1), (Names{"Welcome", "Welcome"}));
  EXPECT_EQ(job_.EventKinds(), Names{"worker_joined"});
}

TEST_F(AdmissionTest, ASurplusProcessIsRefused) {
  for (uint64_t id : {1, 2, 3}) admission_.Join({}, job_.Joiner(Role::kWorker, id));
  EXPECT_EQ(job_.NamesSentTo(3), Names{"Refused"});
  EXPECT_EQ(job_.members.members().size(), 2u);
}

TEST_F(AdmissionTest, RefusalsAreLoggedOnceASecond) {
  ::testing::internal::CaptureStderr();
  for (int ms = 0; ms < 2000; ms += 100) {
    admission_.Refuse(TimePoint() + milliseconds(ms), Incarnation(1), Role::kWorker,
                      Invalid("no place"));
  }
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(text, '\n'), 2) << text;
}

}  // namespace
}  // namespace dt::scheduler
