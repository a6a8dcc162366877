#include "server/life/row_admission.h"

#include <gtest/gtest.h>

namespace dt::server {
namespace {

TEST(RowAdmission, TheNthPushMakesTheRow) {
  for (const uint32_t n : {1u, 2u, 3u, 256u}) {
    RowAdmission admission({.admission_pushes = n, .sketch_bytes = 1 << 16}, 7);
    for (const Key key : {11u, 12u}) {
      uint32_t pushes = 1;
      for (; !admission.Admit(key); ++pushes) admission.Settle();
      EXPECT_EQ(pushes, n);
    }
    EXPECT_EQ(admission.refused(), 2 * (n - 1));
    EXPECT_TRUE(admission.Admit(11)) << "a key that is known does not begin anew";
  }
}

TEST(RowAdmission, KeysOfOnePushDoNotSeeOneAnother) {
  RowAdmission admission({.admission_pushes = 3, .sketch_bytes = 64},
                         7);  // The sketch has a single cache line, so many keys collide.
  for (int push = 0; push < 2; ++push) {
    for (Key key = 0; key < 1000; ++key) EXPECT_FALSE(admission.Admit(key));
    admission.Settle();
  }
  EXPECT_TRUE(admission.Admit(999));
}

TEST(RowAdmission, ResetForgetsCountsAndWhatIsNotSettled) {
  RowAdmission admission({.admission_pushes = 3, .sketch_bytes = 1 << 12}, 7);
  EXPECT_FALSE(admission.Admit(5));
  admission.Settle();
  EXPECT_FALSE(admission.Admit(5));
  admission.Reset();
  admission.Settle();
  EXPECT_FALSE(admission.Admit(5));
  admission.Settle();
  EXPECT_FALSE(admission.Admit(5)) << "one push is counted since the reset";
}

}  // namespace
}  // namespace dt::server
