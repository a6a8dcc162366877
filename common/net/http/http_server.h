// A small HTTP server for status pages and Prometheus: GET only, on an event loop.
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
  // Called on the loop's thread; `path` has no query.
  using Handler = std::function<HttpReply(const std::string& path)>;

  // `address` is "HOST:PORT", with port 0 for any free port; only loopback addresses are allowed. A
  // request whose Host header is neither the address nor localhost gets 421. At most 64 connections
  // are open, and about 640 are accepted per second; further ones wait. A request may have 8 KiB
  // and take 10 s. The server must live as long as the loop runs. Errors, with the address:
  // Invalid; NotYet (not loopback); Unavailable.
  static Result<std::unique_ptr<HttpServer>> Open(EventLoop& loop, const std::string& address,
                                                  Handler handler);
  virtual ~HttpServer() = default;
  // "http://127.0.0.1:40123/".
  virtual const std::string& url() const = 0;
};

}  // namespace dt
