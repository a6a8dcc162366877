#include "common/net/zmq_endpoint.h"

#include <gtest/gtest.h>

namespace dt {
namespace {

TEST(Endpoint, GoodOnesAreReadAndWrittenForZeroMq) {
  struct Case {
    std::string text, zmq;
  };
  const Case cases[] = {
      {"tcp://127.0.0.1:0", "tcp://127.0.0.1:0"},
      {"tcp://localhost:5555", "tcp://127.0.0.1:5555"},
      {"tcp://127.8.9.1:65535", "tcp://127.8.9.1:65535"},
      {"tcp://[::1]:80", "tcp://[::1]:80"},
      {"tcp://10.0.0.1:80", "tcp://10.0.0.1:80"},
      {"tcp://0.0.0.0:*", "tcp://0.0.0.0:0"},
      {"tcp://*:7000", "tcp://*:7000"},
      {"tcp://node-17:7000", "tcp://node-17:7000"},
      {"inproc://server-0", "inproc://server-0"},
      {"ipc:///run/x", "ipc:///run/x"},
  };
  for (const Case& c : cases) {
    const Result<EndpointParts> parts = ParseEndpoint(c.text);
    ASSERT_TRUE(parts.ok()) << c.text << parts.status();
    EXPECT_EQ(EndpointText(*parts), c.zmq);
  }
}

TEST(Endpoint, BadOnesAreRefusedByName) {
  for (const std::string text :
       {"", "tcp://", "tcp://:80", "tcp://host", "tcp://host:", "tcp://host:65536", "tcp://host:8x",
        "tcp://::1:80", "tcp://[]:80", "udp://host:1", "host:1", "inproc://", "tcp://host:-1"}) {
    const Result<EndpointParts> parts = ParseEndpoint(text);
    ASSERT_FALSE(parts.ok()) << text;
    EXPECT_EQ(parts.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(ToText(parts.status()).find("\"" + text + "\""), std::string::npos);
  }
}

TEST(Endpoint, UnknownHostIsNamed) {
  const auto parts = ParseEndpoint("tcp://no-such-host.invalid:1");
  ASSERT_TRUE(parts.ok());
  const Status status = CheckHost(*parts, "tcp://no-such-host.invalid:1");
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_NE(ToText(status).find("no-such-host.invalid"), std::string::npos);
}

}  // namespace
}  // namespace dt
