#include "common/net/zmq_endpoint.h"

#include <arpa/inet.h>
#include <charconv>

#include <netdb.h>

namespace dt {
namespace {

bool IsPort(const std::string& text) {
  unsigned value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end && value <= 65535;
}

bool IsAddress(const std::string& host) {
  in6_addr address{};
  return inet_pton(AF_INET, host.c_str(), &address) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

Status NotAnEndpoint(const std::string& endpoint) {
  return WithHint(Invalid("\"{}\" is not an address", endpoint),
                  "write tcp://HOST:PORT; port 0 takes any free one");
}

}  // namespace

Result<EndpointParts> ParseEndpoint(const std::string& endpoint) {
  const size_t at = endpoint.find("://");
  if (at == std::string::npos) return NotAnEndpoint(endpoint);
  EndpointParts parts;
  parts.scheme = endpoint.substr(0, at);
  const std::string rest = endpoint.substr(at + 3);
  const bool has_nul = endpoint.find('\0') != std::string::npos;
  if (has_nul || rest.empty()) return NotAnEndpoint(endpoint);
  if (parts.scheme == "inproc" || parts.scheme == "ipc") {
    parts.host = rest;
    return parts;
  }
  const size_t colon = rest.rfind(':');
  if (parts.scheme != "tcp" || colon == std::string::npos || colon == 0) {
    return NotAnEndpoint(endpoint);
  }
  parts.host = rest.substr(0, colon);
  parts.port = rest.substr(colon + 1);
  if (parts.port == "*") parts.port = "0";
  if (!IsPort(parts.port)) return NotAnEndpoint(endpoint);
  const bool bracketed = parts.host.front() == '[' && parts.host.back() == ']';
  if (bracketed) parts.host = parts.host.substr(1, parts.host.size() - 2);
  if (parts.host.empty() || (!bracketed && parts.host.find(':') != std::string::npos)) {
    return NotAnEndpoint(endpoint);
  }
  return parts;
}

Status CheckHost(const EndpointParts& parts, const std::string& endpoint) {
  if (parts.scheme != "tcp" || parts.host == "localhost" || IsAddress(parts.host))
    return OkStatus();
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(parts.host.c_str(), nullptr, &hints, &found);
  if (error == 0) {
    freeaddrinfo(found);
    return OkStatus();
  }
  return WithHint(Unavailable("cannot connect to {}: host {} is not known ({})", endpoint,
                              parts.host, gai_strerror(error)),
                  "check the name, or write the address in numbers");
}

std::string EndpointText(const EndpointParts& parts) {
  if (parts.scheme != "tcp") return parts.scheme + "://" + parts.host;
  const std::string host = parts.host == "localhost" ? "127.0.0.1" : parts.host;
  const bool v6 = host.find(':') != std::string::npos;
  return "tcp://" + (v6 ? "[" + host + "]" : host) + ":" + parts.port;
}

}  // namespace dt
