// The subcommands, one file and one function for each. They return the exit code.
#pragma once

#include "cli/command_line.h"
#include "cli/process/signals.h"

namespace dt::cli {

int RunTrain(const CommandLine& line, StopSignals& signals);
int RunLaunch(const CommandLine& line, StopSignals& signals);
int RunRole(const CommandLine& line, StopSignals& signals);
int RunEvaluate(const CommandLine& line, StopSignals& signals);  // eval and predict
int RunPlan(const CommandLine& line);
int RunPlanQuery();
int RunStatus(const CommandLine& line);
int RunDrain(const CommandLine& line);
int RunScale(const CommandLine& line);
int RunCheckpoint(const CommandLine& line);
int RunExport(const CommandLine& line);
int RunReport(const CommandLine& line);
int RunSchema(const CommandLine& line);
int RunKeygen(const CommandLine& line);
int RunData(const CommandLine& line);
int RunBench(const CommandLine& line, StopSignals& signals);

}  // namespace dt::cli
