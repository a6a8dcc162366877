#include "server/life/row_admission.h"

#include "common/base/check.h"

namespace dt::server {

RowAdmission::RowAdmission(const LifeSpec& spec, uint64_t salt) : pushes_(spec.admission_pushes) {
  DT_CHECK(pushes_ <= CountMinSketch::kCountMax + 1);
  if (!admits_all()) sketch_ = CountMinSketch(spec.sketch_bytes, salt);
}

bool RowAdmission::Admit(Key key) {
  if (admits_all()) return true;
  const uint32_t pushes = sketch_.Estimate(key) + 1;
  if (pushes >= pushes_) return true;
  pending_.push_back({key, pushes});
  return false;
}

void RowAdmission::Settle() {
  refused_ += pending_.size();
  for (const Refused& refused : pending_) sketch_.RaiseTo(refused.key, refused.count);
  pending_.clear();
}

void RowAdmission::Reset() {
  sketch_.Clear();
  pending_.clear();
}

}  // namespace dt::server
