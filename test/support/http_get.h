// HTTP GET over loopback, for tests of pages.
#pragma once

#include <string>

namespace dt::test {

struct HttpAnswer {
  int status = 0;  // 0: no answer.
  std::string body;
};

// `url`: "http://127.0.0.1:PORT/path". Waits at most a few seconds.
HttpAnswer HttpGet(const std::string& url);

}  // namespace dt::test
