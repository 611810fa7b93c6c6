"""Every edge of the plan-solve diagrams has a test that walks it: the table is held against the list of edges."""

from __future__ import annotations

from tests.support.tables import edges_of, edges_walked, functions_of

CIRCLE = "test_worked_example_of_the_circle"
SIDE = "test_tasks_run_in_parallel_once_dependencies_are_done"
THINKS = "test_planner_may_think_first_and_write_a_rejected_plan_anew"
TOOLLESS = "test_without_tools_the_plan_is_the_answer"
RETRY = "test_failed_task_is_tried_again"
CANCELLED = "test_task_that_waits_to_be_tried_again_is_not"
PYTHON = "test_shipped_roles_return_context_results_and_statistics"
# (section, the state around, the way through it) → the test that walks it
WALKED = {
    ("1", "", "[*] IDLE PLANNING SOLVING VERIFYING FINISHED [*]"): SIDE,
    ("1", "PLANNING", "[*] AnalyzeProblem CreatePlan ValidatePlan StorePlan [*]"): CIRCLE,
    (
        "1",
        "SOLVING",
        "[*] CheckNextTask MarkInProgress ExecuteTool RecordResult MarkCompleted CheckNextTask [*]",
    ): CIRCLE,
    ("1", "VERIFYING", "[*] CheckResults ValidateAnswer FormatResponse [*]"): CIRCLE,
    ("2", "", "[*] PENDING IN_PROGRESS COMPLETED [*]"): SIDE,
    ("2", "", "IN_PROGRESS FAILED IN_PROGRESS"): RETRY,
    ("2", "", "FAILED SKIPPED [*]"): CANCELLED,
    (
        "3",
        "",
        "[*] ReceiveQuestion Step1_Plan Step2_Execute1 Step3_Execute2 StepN_ExecuteN StepFinal_Verify [*]",
    ): CIRCLE,
    ("3", "Step1_Plan", "[*] Think_Plan Call_WriteTodos ExecuteTool_WriteTodos StoreTodoList [*]"): CIRCLE,
    ("3", "Step2_Execute1", "[*] Think_Execute UpdateStatus_Start SelectTool CallTool UpdateStatus_Done [*]"): CIRCLE,
    (
        "3",
        "Step3_Execute2",
        "[*] Think_Execute2 UpdateStatus_Start2 SelectTool2 CallTool2 UpdateStatus_Done2 [*]",
    ): CIRCLE,
    ("3", "StepN_ExecuteN", "[*] ExecuteRemaining [*]"): CIRCLE,
    ("3", "StepFinal_Verify", "[*] CheckProgress ValidateResults FormatAnswer CallTerminate [*]"): CIRCLE,
    ("4", "", "[*] LLM_Think ToolSelection CheckToolType"): CIRCLE,
    ("4", "ToolSelection", "[*] IdentifyTool ValidateParams [*]"): CIRCLE,
    ("4", "", "CheckToolType PlanningTool AddToMemory NextStep [*]"): CIRCLE,
    ("4", "", "CheckToolType DomainTool AddToMemory"): CIRCLE,
    ("4", "", "CheckToolType ValidationTool AddToMemory"): THINKS,
    ("4", "", "CheckToolType SpecialTool AddToMemory"): CIRCLE,
    ("4", "PlanningTool", "[*] ParseTodos ValidateFormat UpdateState FormatOutput [*]"): CIRCLE,
    ("4", "DomainTool", "[*] ParseInput ExecuteLogic [*]"): CIRCLE,
    ("4", "ValidationTool", "[*] AnalyzePlan GenerateFeedback [*]"): THINKS,
    ("4", "SpecialTool", "[*] GenerateSummary UpdateStateFinished [*]"): CIRCLE,
    ("5", "", "[*] InitAgent WaitInput PrepareMessages CallLLM CheckResponse"): CIRCLE,
    ("5", "PrepareMessages", "[*] AddUserMessage AddSystemPrompt AddNextStepPrompt [*]"): CIRCLE,
    ("5", "CallLLM", "[*] FormatMessages SendRequest ReceiveResponse ParseResponse [*]"): CIRCLE,
    ("5", "", "CheckResponse HasToolCalls ExecuteTools PrepareMessages"): CIRCLE,
    ("5", "ExecuteTools", "[*] ToolLoop ExecuteTool StoreResult ToolLoop [*]"): CIRCLE,
    ("5", "", "CheckResponse NoToolCalls CheckFinished PrepareMessages"): THINKS,
    ("5", "", "CheckFinished Complete [*]"): CIRCLE,
    ("6", "", "[*] EmptyMemory AddUserMsg AddAssistantMsg AddToolMsg AddAssistantMsg FinalSummary [*]"): CIRCLE,
    ("6", "AddUserMsg", "[*] CreateMessage AppendMemory [*]"): CIRCLE,
    ("6", "AddAssistantMsg", "[*] CreateAssistantMsg CheckToolCalls WithTools StoreWithTools [*]"): CIRCLE,
    ("6", "AddAssistantMsg", "CheckToolCalls WithoutTools StoreContentOnly [*]"): TOOLLESS,
    ("6", "AddToolMsg", "[*] LoopTools CreateToolMsg SetToolCallId AppendResult LoopTools [*]"): CIRCLE,
    ("6", "FinalSummary", "[*] AddSummaryPrompt CallLLM StoreSummary [*]"): CIRCLE,
    ("7", "", "[*] Start Step1 Step2 Step3 Step4 Step5 End [*]"): CIRCLE,
    ("7", "Step1", "[*] Think1 Tool1 Result1 [*]"): CIRCLE,
    ("7", "Step2", "[*] Think2 Update2a Tool2 Result2 Update2b [*]"): CIRCLE,
    ("7", "Step3", "[*] Think3 Update3a Tool3 Result3 Update3b [*]"): CIRCLE,
    ("7", "Step4", "[*] Think4 Update4a Tool4 Result4 Update4b [*]"): CIRCLE,
    ("7", "Step5", "[*] Think5 Update5a Format5 Update5b Tool5 [*]"): CIRCLE,
    ("7", "End", "[*] Summary Final [*]"): CIRCLE,
    ("8", "", "Question Planner TaskList FanOut SolverA Drafts Aggregator Final"): PYTHON,
    ("8", "", "FanOut SolverB Drafts"): SIDE,
    ("8", "", "FanOut SolverN Drafts"): SIDE,
    ("9", "", "Orchestrator Planner Orchestrator Solvers Orchestrator Aggregator Orchestrator User"): PYTHON,
    ("9", "", "Orchestrator Planner"): PYTHON,  # build_agent(): its process, its thread and its tools
    ("9", "", "Orchestrator Solvers"): SIDE,  # build_agent(task): a process and a thread of its own
}


def test_no_edge_is_without_a_test() -> None:
    assert edges_of("plan_solve") == set(edges_walked(WALKED))


def test_every_test_it_names_is_there() -> None:
    there = functions_of(
        "systems/test_plan_solve.py", "systems/plan_solve/test_plan_solver.py", "engine/test_cancel_task.py"
    )
    assert set(WALKED.values()) <= there
