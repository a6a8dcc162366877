// A small HTTP server for pages that a person or Prometheus looks at: GET only, on an event loop.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/runtime/event_loop.h"

namespace dt {

struct HttpReply {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
};

class HttpServer {
 public:
  // On the loop's thread; `path` has no query.
  using Handler = std::function<HttpReply(const std::string& path)>;

  // `address` is "HOST:PORT", port 0 for any. Loopback only; asked for by another name than the
  // address or localhost, nothing is shown (421). At most 64 connections, and about 640 in a
  // second, each with 8 KiB of request and 10 s of patience; the rest waits. Errors name the
  // address: Invalid, NotYet (not loopback), Unavailable. The server ends with the loop; it lives
  // as long as the loop runs.
  static Result<std::unique_ptr<HttpServer>> Open(EventLoop& loop, const std::string& address,
                                                  Handler handler);
  virtual ~HttpServer() = default;
  // "http://127.0.0.1:40123/".
  virtual const std::string& url() const = 0;
};

}  // namespace dt
