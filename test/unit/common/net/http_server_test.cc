// Goal: pages are served, and bad requests do no harm. Method: hand-made requests over real
// loopback sockets, each with a deadline.
#include "common/net/http/http_server.h"

#include <arpa/inet.h>
#include <ctime>
#include <sys/resource.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "common/base/pause.h"

namespace dt {
namespace {

class HttpServerTest : public ::testing::Test {
 public:
  HttpServerTest() {
    server_ = *HttpServer::Open(loop_, "127.0.0.1:0", [](const std::string& path) {
      if (path == "/") return HttpReply{200, "text/plain", "hello\n"};
      return HttpReply{404, "text/plain", "nothing at " + path};
    });
    thread_ = std::jthread([this] { loop_.Run(); });
  }
  ~HttpServerTest() override {
    loop_.Stop();
    thread_.join();
  }

 protected:
  // Sends these bytes and returns everything that comes back.
  std::string Ask(const std::string& bytes) {
    const int fd = Open();
    EXPECT_EQ(send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    return ReadAll(fd);
  }
  std::string Get(const std::string& host) {
    return Ask("GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
  }
  int Open() {
    const std::string& url = server_->url();  // "http://127.0.0.1:PORT/"
    const int port = std::stoi(url.substr(url.rfind(':') + 1));
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    const timeval timeout{20, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port));
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
    return fd;
  }
  static std::string ReadAll(int fd) {
    shutdown(fd, SHUT_WR);
    std::string answer;
    char buffer[4096];
    for (ssize_t n; (n = recv(fd, buffer, sizeof(buffer), 0)) > 0;) {
      answer.append(buffer, static_cast<size_t>(n));
    }
    close(fd);
    return answer;
  }

  EventLoop loop_;
  std::unique_ptr<HttpServer> server_;
  std::jthread thread_;
};

TEST_F(HttpServerTest, ServesItsPages) {
  const std::string answer = Ask("GET /?x=1 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
  EXPECT_TRUE(answer.ends_with("\r\n\r\nhello\n")) << answer;
  EXPECT_TRUE(Ask("GET /a/b HTTP/1.0\r\nHost: localhost\r\n\r\n").ends_with("nothing at /a/b"));
  EXPECT_TRUE(Ask("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx")
                  .starts_with("HTTP/1.1 405"));
}

TEST_F(HttpServerTest, BadRequestsDoNotHurt) {
  for (const std::string& bytes :
       {std::string(), std::string("\0\xff\r\n\r\n", 6), std::string("GET"),
        "GET / HTTP/1.1\r\nA: " + std::string(20000, 'x') + "\r\n\r\n",
        std::string("POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n")}) {
    Ask(bytes);
  }
  EXPECT_TRUE(Get("localhost").ends_with("hello\n"));
}

// Otherwise a page of evil.example, whose name is made to resolve to this address, could read ours
// in a browser.
TEST_F(HttpServerTest, OnlyItsOwnNamesAreAnswered) {
  const std::string& url = server_->url();
  const std::string own = url.substr(7, url.size() - 8);
  for (const std::string& host :
       {own, std::string("127.0.0.1"), std::string("LocalHost:8080"), std::string("[::1]:80")}) {
    EXPECT_TRUE(Get(host).ends_with("hello\n")) << host;
  }
  for (const char* host : {"evil.example", "evil.example:80", "localhost.evil.example", "",
                           "127.0.0.1.evil.example:80", "0.0.0.0", ":80", "[::1", "]"}) {
    EXPECT_TRUE(Get(host).starts_with("HTTP/1.1 421 ")) << host;
  }
  EXPECT_TRUE(Ask("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 421 "));
}

TEST_F(HttpServerTest, WhoComesWhenAllConnectionsAreInUseWaits) {
  std::vector<int> idle;
  for (int i = 0; i < 64; ++i) idle.push_back(Open());
  const int late = Open();
  const std::string request = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  send(late, request.data(), request.size(), MSG_NOSIGNAL);
  Pause(milliseconds(50));
  close(idle.back());
  EXPECT_TRUE(ReadAll(late).ends_with("hello\n"));
  idle.pop_back();
  for (const int fd : idle) close(fd);
}

TEST_F(HttpServerTest, WithoutDescriptorsItWaitsAndUsesNoTime) {
  const int place = Open();
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const int last = dup(place);
  const rlimit none{static_cast<rlim_t>(last) + 1, limit.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  close(place);
  const int client = Open();  // No descriptor is left to accept this connection with.
  const std::clock_t begun = std::clock();
  Pause(milliseconds(500));
  const double seconds = static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC;
  EXPECT_LT(seconds, 0.1) << "of 0.5";
  setrlimit(RLIMIT_NOFILE, &limit);
  const std::string request = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  send(client, request.data(), request.size(), MSG_NOSIGNAL);
  EXPECT_TRUE(ReadAll(client).ends_with("hello\n"));
  close(last);
}

TEST(HttpServerAddress, IsCheckedAndNamed) {
  EventLoop loop;
  const auto open = [&](const std::string& address) {
    return HttpServer::Open(loop, address, [](const std::string&) { return HttpReply(); }).status();
  };
  EXPECT_EQ(open("nonsense").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(open("127.0.0.1:x").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(open("0.0.0.0:0").code(), StatusCode::kUnimplemented);
  const auto first =
      HttpServer::Open(loop, "localhost:0", [](const std::string&) { return HttpReply(); });
  ASSERT_TRUE(first.ok());
  const std::string url = (*first)->url();
  const std::string address = url.substr(7, url.size() - 8);
  EXPECT_EQ(open(address).code(), StatusCode::kUnavailable);
  EXPECT_NE(ToText(open(address)).find(address), std::string::npos);
}

}  // namespace
}  // namespace dt
