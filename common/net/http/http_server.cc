#include "common/net/http/http_server.h"

#include <charconv>
#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/version.hpp>

#include "common/runtime/event_loop_asio.h"

namespace dt {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using tcp = asio::ip::tcp;
using ErrorCode = boost::system::error_code;

constexpr size_t kConnectionsMax = 64;
constexpr size_t kAcceptedMax = 64;  // Connections accepted between two pauses.
constexpr size_t kRequestBytesMax = 8 << 10;
constexpr seconds kTimeout(10);
constexpr milliseconds kAcceptPause(100);

// Protects against DNS rebinding: a foreign page whose name resolves to this machine could read our
// pages in its visitor's browser, but then the browser's Host header has the foreign name. The port
// is not compared, because the request may come through a tunnel.
bool IsOwnHost(std::string_view host, const std::string& own) {
  const size_t colon = host.rfind(':');
  if (colon != std::string_view::npos && !host.ends_with(']')) host = host.substr(0, colon);
  return host == own || host == "127.0.0.1" || host == "[::1]" ||
         beast::iequals(beast::string_view(host.data(), host.size()), "localhost");
}

// Handles one request. The object keeps itself alive while it waits.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, const HttpServer::Handler& handler, const std::string& own_host,
             std::shared_ptr<size_t> connections)
      : stream_(std::move(socket)),
        handler_(handler),
        own_host_(own_host),
        connections_(std::move(connections)) {
    ++*connections_;
    parser_.header_limit(kRequestBytesMax);
    parser_.body_limit(kRequestBytesMax);
  }
  ~Connection() { --*connections_; }

  void Start() {
    stream_.expires_after(kTimeout);
    http::async_read(stream_, buffer_, parser_,
                     [self = shared_from_this()](const ErrorCode& error, size_t) {
                       if (!error) self->Answer();
                     });
  }

 private:
  void Answer() {
    HttpReply reply{405, "text/plain; charset=utf-8", "only GET is answered\n"};
    const auto& request = parser_.get();
    const auto host = request[http::field::host];
    if (!IsOwnHost({host.data(), host.size()}, own_host_)) {
      reply = {421, "text/plain; charset=utf-8", "ask by this machine's address or localhost\n"};
    } else if (request.method() == http::verb::get) {
      const std::string target(request.target());
      reply = handler_(target.substr(0, target.find('?')));
    }
    response_.version(request.version());
    response_.result(static_cast<unsigned>(reply.status));
    response_.set(http::field::content_type, reply.type);
    response_.set(http::field::cache_control, "no-store");
    response_.body() = std::move(reply.body);
    response_.keep_alive(false);
    response_.prepare_payload();
    stream_.expires_after(kTimeout);
    http::async_write(stream_, response_, [self = shared_from_this()](const ErrorCode&, size_t) {
      ErrorCode ignored;
      self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    });
  }

  beast::tcp_stream stream_;
  const HttpServer::Handler& handler_;
  const std::string& own_host_;
  const std::shared_ptr<size_t> connections_;
  beast::flat_buffer buffer_;
  http::request_parser<http::string_body> parser_;
  http::response<http::string_body> response_;
};

class HttpServerImpl : public HttpServer {
 public:
  HttpServerImpl(tcp::acceptor acceptor, Handler handler, std::string host)
      : acceptor_(std::move(acceptor)),
        pause_(acceptor_.get_executor()),
        handler_(std::move(handler)),
        host_(std::move(host)),
        url_(fmt::format("http://{}:{}/", host_, acceptor_.local_endpoint().port())) {
    Accept();
  }
  const std::string& url() const override { return url_; }

 private:
  // Pauses after a failure (such as no free descriptor), while all connections are in use, and
  // after every kAcceptedMax connections, so that other work on the loop gets its turn.
  void Accept() {
    acceptor_.async_accept([this](const ErrorCode& error, tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (!error) {
        std::make_shared<Connection>(std::move(socket), handler_, host_, connections_)->Start();
        ++accepted_;
      }
      const bool enough = *connections_ >= kConnectionsMax || accepted_ >= kAcceptedMax;
      error || enough ? Pause() : Accept();
    });
  }

  void Pause() {
    accepted_ = 0;
    pause_.expires_after(kAcceptPause);
    pause_.async_wait([this](const ErrorCode& error) {
      if (error) return;
      *connections_ < kConnectionsMax ? Accept() : Pause();
    });
  }

  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  size_t accepted_ = 0;  // Connections since the last pause.
  const Handler handler_;
  const std::string host_;
  const std::string url_;
  const std::shared_ptr<size_t> connections_ = std::make_shared<size_t>(0);
};

Result<tcp::endpoint> EndpointOf(const std::string& address) {
  const size_t colon = address.rfind(':');
  unsigned short port = 0;
  const char* end = address.data() + address.size();
  if (colon == std::string::npos ||
      std::from_chars(address.data() + colon + 1, end, port).ptr != end) {
    return Invalid("observe.http is \"{}\"; it needs HOST:PORT, or off", address);
  }
  std::string host = address.substr(0, colon);
  if (host == "localhost") host = "127.0.0.1";
  ErrorCode error;
  const asio::ip::address ip = asio::ip::make_address(host, error);
  if (error) return Invalid("observe.http is \"{}\"; its host is not an address", address);
  if (!ip.is_loopback()) {
    return WithHint(NotYet("the page can only be served on loopback; observe.http is {}", address),
                    "use 127.0.0.1:0 and an ssh tunnel");
  }
  return tcp::endpoint(ip, port);
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::Open(EventLoop& loop, const std::string& address,
                                                     Handler handler) {
  DT_TRY(const tcp::endpoint endpoint, EndpointOf(address));
  tcp::acceptor acceptor(loop.impl().context);
  ErrorCode error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
  if (error) {
    return WithHint(Unavailable("the page cannot be served at {}: {}", address, error.message()),
                    "set observe.http to another HOST:PORT (port 0 takes any free one), or to off");
  }
  const std::string ip = endpoint.address().to_string();
  return std::make_unique<HttpServerImpl>(std::move(acceptor), std::move(handler),
                                          endpoint.address().is_v6() ? "[" + ip + "]" : ip);
}

}  // namespace dt
