#include "common/control/messages.h"
#include "common/wire/spec_tables.h"
#include "common/wire/table_reader.h"
#include "common/wire/table_writer.h"
#include "control_generated.h"

namespace dt {
namespace {

constexpr char kIdentifier[] = "DTC1";

struct Envelope {
  ControlMessage body;
  DT_FIELDS(body)
};

}  // namespace

namespace tables {

namespace fbs = dt::control_fbs;

DT_UNION(fbs::Body);
DT_UNION(fbs::What);
DT_UNION(fbs::Done);
DT_LAST(Role, kWorker);
DT_LAST(DeviceKind, kEmulated);
DT_LAST(SplitKind, kTest);
DT_LAST(StatusCode, kUnauthenticated);

DT_TABLE(Envelope, fbs::Control);
DT_TABLE(Problem, fbs::Problem);
DT_TABLE(ProcessStats, fbs::Stats);
DT_TABLE(ShardMap, fbs::ShardMap);
DT_TABLE(View, fbs::View);
DT_TABLE(DeviceInfo, fbs::Device);
DT_TABLE(TableReport, fbs::TableReport);
DT_TABLE(CopyReport, fbs::CopyReport);
DT_TABLE(ChainReport, fbs::ChainReport);
DT_TABLE(ExecutorReport, fbs::ExecutorReport);
DT_TABLE(ThreadReport, fbs::ThreadReport);
DT_TABLE(PeerReport, fbs::PeerReport);
DT_TABLE(CopySum, fbs::CopySum);
DT_TABLE(DenseSum, fbs::DenseSum);
DT_TABLE(CheckpointFile, fbs::File);
DT_TABLE(EvaluatePart, fbs::Part);
DT_TABLE(LossScores, fbs::LossScores);
DT_TABLE(PartitionRange, fbs::Partition);
DT_TABLE(StreamCut, fbs::Cut);
DT_TABLE(TrainOrder, fbs::TrainOrder);
DT_TABLE(EvaluateOrder, fbs::EvaluateOrder);
DT_TABLE(SaveOrder, fbs::SaveOrder);
DT_TABLE(TakenTable, fbs::TakenTable);
DT_TABLE(TakenParts, fbs::TakenParts);
DT_TABLE(LoadOrder, fbs::LoadOrder);
DT_TABLE(FinishOrder, fbs::FinishOrder);
DT_TABLE(TrainDone, fbs::TrainDone);
DT_TABLE(EvaluateDone, fbs::EvaluateDone);
DT_TABLE(SaveDone, fbs::SaveDone);
DT_TABLE(LoadDone, fbs::LoadDone);
DT_TABLE(FinishDone, fbs::FinishDone);
DT_TABLE(JoinMessage, fbs::Join);
DT_TABLE(StripeReport, fbs::Stripe);
DT_TABLE(DataReadyMessage, fbs::DataReady);
DT_TABLE(ReadyMessage, fbs::Ready);
DT_TABLE(HeartbeatMessage, fbs::Heartbeat);
DT_TABLE(OrderDoneMessage, fbs::OrderDone);
DT_TABLE(FailedMessage, fbs::Failed);
DT_TABLE(LeavingMessage, fbs::Leaving);
DT_TABLE(KvPutMessage, fbs::KvPut);
DT_TABLE(KvGetMessage, fbs::KvGet);
DT_TABLE(StatusRequestMessage, fbs::StatusRequest);
DT_TABLE(WelcomeMessage, fbs::Welcome);
DT_TABLE(RefusedMessage, fbs::Refused);
DT_TABLE(PlanBytes, fbs::PlanBytes);
DT_TABLE(StartMessage, fbs::Start);
DT_TABLE(OrderMessage, fbs::Order);
DT_TABLE(KvValueMessage, fbs::KvValue);
DT_TABLE(StopMessage, fbs::Stop);
DT_TABLE(StatusReplyMessage, fbs::StatusReply);
DT_TABLE(SplitRequestMessage, fbs::SplitRequest);
DT_TABLE(SplitMessage, fbs::Split);
DT_TABLE(RowsWrittenMessage, fbs::RowsWritten);
DT_TABLE(CheckpointCommittedMessage, fbs::CheckpointCommitted);
DT_TABLE(MapChangedMessage, fbs::MapChanged);
DT_TABLE(ShardCopiedMessage, fbs::ShardCopied);
DT_TABLE(DrainRequestMessage, fbs::DrainRequest);
DT_TABLE(CommandReplyMessage, fbs::CommandReply);
DT_TABLE(RecallMessage, fbs::Recall);
DT_TABLE(RecalledMessage, fbs::Recalled);
DT_TABLE(NewViewMessage, fbs::NewView);
DT_TABLE(ViewReportMessage, fbs::ViewReport);
DT_TABLE(ViewBeginsMessage, fbs::ViewBegins);
DT_TABLE(ScaleRequestMessage, fbs::ScaleRequest);
DT_TABLE(ReadDataMessage, fbs::ReadData);
DT_TABLE(StreamReportMessage, fbs::StreamReport);

}  // namespace tables

std::string_view NameOf(const ControlMessage& message) {
  return std::visit(
      []<class Message>(const Message&) -> std::string_view {
        return tables::TableOf<Message>::type::Traits::name;
      },
      message);
}

std::string EncodeControl(const ControlMessage& message) {
  return tables::Encode(Envelope{message}, kIdentifier);
}

Result<ControlMessage> DecodeControl(std::span<const std::byte> bytes) {
  BudgetReader in(bytes.size());
  Envelope envelope;
  if (!tables::Decode(bytes, kIdentifier, in, envelope)) {
    return Malformed("a control message of {} bytes that does not follow the schema", bytes.size());
  }
  return std::move(envelope.body);
}

}  // namespace dt
