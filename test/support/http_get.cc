#include "test/support/http_get.h"

#include <algorithm>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

namespace dt::test {

HttpAnswer HttpGet(const std::string& url) {
  const size_t host = std::string("http://").size();
  const size_t colon = url.find(':', host), path = std::min(url.find('/', host), url.size());
  if (!url.starts_with("http://") || colon >= path) return {};
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(std::stoul(url.substr(colon + 1, path - colon - 1))));
  inet_pton(AF_INET, url.substr(host, colon - host).c_str(), &to.sin_addr);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval timeout{.tv_sec = 5, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
  std::string text;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0) {
    const std::string request = "GET " + (path < url.size() ? url.substr(path) : "/") +
                                " HTTP/1.1\r\nHost: " + url.substr(host, path - host) +
                                "\r\nConnection: close\r\n\r\n";
    send(fd, request.data(), request.size(), MSG_NOSIGNAL);
    char piece[4096];
    for (ssize_t n = 0; (n = recv(fd, piece, sizeof(piece), 0)) > 0;) {
      text.append(piece, static_cast<size_t>(n));
    }
  }
  close(fd);
  const size_t body = text.find("\r\n\r\n");
  if (!text.starts_with("HTTP/1.1 ") || body == std::string::npos) return {};
  return {std::stoi(text.substr(9, 3)), text.substr(body + 4)};
}

}  // namespace dt::test
