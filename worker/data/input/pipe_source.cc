#include <cstring>
#include <errno.h>
#include <unistd.h>

#include "worker/data/input/byte_source.h"
#include "worker/data/input/command.h"

namespace dt::worker {
namespace {

class PipeSource : public ByteSource {
 public:
  explicit PipeSource(std::unique_ptr<Command> command) : command_(std::move(command)) {}

  Result<size_t> Read(std::span<char> out) override {
    size_t done = 0;
    while (done < out.size()) {
      const ssize_t got = read(command_->output(), out.data() + done, out.size() - done);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) {
        return Unavailable("reading from the command `{}` failed: {}", command_->text(),
                           std::strerror(errno));
      }
      if (got == 0) {
        DT_TRY_STATUS(command_->Reap(made_));
        break;
      }
      done += static_cast<size_t>(got);
      made_ += static_cast<uint64_t>(got);
    }
    return done;
  }
  uint64_t consumed() const override { return made_; }

 private:
  const std::unique_ptr<Command> command_;
  uint64_t made_ = 0;
};

}  // namespace

Result<std::unique_ptr<ByteSource>> OpenPipeSource(const std::string& command) {
  DT_TRY(auto started, Command::Start(command));
  return std::make_unique<PipeSource>(std::move(started));
}

}  // namespace dt::worker
