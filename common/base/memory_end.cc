#include "common/base/memory_end.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <sys/resource.h>
#include <system_error>

#include "common/base/log.h"
#include "common/base/text.h"

namespace dt {
namespace {

constexpr char kHint[] = "free some memory, or raise the limit of this process (ulimit -v, -u)";

// Allocates nothing. `sentence` must not contain a character that JSON escapes.
[[noreturn]] void EndWith(const char* sentence) {
  constexpr char kJson[] = R"({"level":"error","event":"error","what":"%s","where":"","hint":"%s"})"
                           "\n";
  std::fprintf(stderr, LogsJson() ? kJson : "dovetail: %s\n  %s\n", sentence, kHint);
  std::fflush(stderr);
  std::_Exit(1);
}

constexpr uint64_t kAddressesMin = uint64_t{1} << 30;
constexpr char kNoThreads[] = "the system lets this process start no more threads";

void SayUncaught(const char* what) {
  if (LogsJson()) {
    LogEnd("uncaught", {{"what", what}});
  } else {
    std::fprintf(stderr, "uncaught: %s\n", Printable(what).c_str());
  }
}

[[noreturn]] void OnUncaught() {
  try {
    if (const std::exception_ptr what = std::current_exception()) std::rethrow_exception(what);
  } catch (const std::bad_alloc&) {
    EndWith("out of memory");
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again) EndWith(kNoThreads);
    SayUncaught(error.what());
  } catch (const std::exception& error) {
    // oneTBB throws a runtime_error with this text when it cannot start a thread.
    if (std::strstr(error.what(), "pthread_create has failed") != nullptr) EndWith(kNoThreads);
    SayUncaught(error.what());
  }
  std::abort();
}

}  // namespace

void EndOutOfMemory(uint64_t bytes, std::string_view of_what) {
  std::array<char, 128> sentence;
  std::snprintf(sentence.data(), sentence.size(), "out of memory for %llu bytes of %.*s",
                static_cast<unsigned long long>(bytes), static_cast<int>(of_what.size()),
                of_what.data());
  EndWith(sentence.data());
}

void InstallMemoryEnd() { std::set_terminate(OnUncaught); }

Status CheckAddresses() {
  rlimit addresses{};
  if (getrlimit(RLIMIT_AS, &addresses) != 0 || addresses.rlim_cur >= kAddressesMin)
    return OkStatus();
  return Unavailable("this process may have {} of addresses; a job takes at least {} (ulimit -v)",
                     BytesText(addresses.rlim_cur), BytesText(kAddressesMin));
}

}  // namespace dt
