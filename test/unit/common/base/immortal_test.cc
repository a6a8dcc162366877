#include "common/base/immortal.h"

#include <gtest/gtest.h>

namespace dt {
namespace {

struct Mortal {
  Mortal(bool& has_gone, int its_value) : gone(has_gone), value(its_value) {}
  ~Mortal() { gone = true; }
  bool& gone;
  int value;
};

TEST(Immortal, MakesTheObjectAndNeverDestroysIt) {
  bool gone = false;
  {
    Immortal<Mortal> immortal(gone, 7);
    EXPECT_EQ((*immortal).value, 7);
  }
  EXPECT_FALSE(gone);
}

}  // namespace
}  // namespace dt
