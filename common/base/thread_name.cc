#include "common/base/thread_name.h"

#include <pthread.h>
#include <string>

namespace dt {

void NameThread(const char* name) {
  constexpr size_t kLengthMax = 15;  // Linux refuses longer ones.
  pthread_setname_np(pthread_self(), std::string(name).substr(0, kLengthMax).c_str());
}

}  // namespace dt
