#include "common/control/status_query.h"

#include "common/base/entropy.h"
#include "common/control/packet.h"
#include "common/wire/control.h"

namespace dt {

Result<std::string> QueryStatus(Network& network, const std::string& scheduler, Duration patience) {
  DT_TRY(const std::unique_ptr<ClientSocket> socket, network.Connect(scheduler));
  const TimePoint deadline = SystemClock().Now() + patience;
  DT_TRY_STATUS(socket->Send(EncodePacket({.session = EntropyBits(),
                                           .sequence = 0,
                                           .ack = 0,
                                           .payload = EncodeControl(StatusRequestMessage{})})));
  for (TimePoint now = SystemClock().Now(); now < deadline; now = SystemClock().Now()) {
    const Result<Frames> frames = socket->Receive(deadline - now);
    if (!frames.ok()) break;
    const Result<Packet> packet = DecodePacket(*frames);
    if (!packet.ok()) continue;
    const Result<ControlMessage> message =
        DecodeControl(std::as_bytes(std::span(packet->payload.data(), packet->payload.size())));
    if (!message.ok()) continue;
    if (const auto* reply = std::get_if<StatusReplyMessage>(&*message)) return reply->json;
  }
  return Timeout("no scheduler answers at {} within {} s", scheduler,
                 std::chrono::duration_cast<seconds>(patience).count());
}

}  // namespace dt
