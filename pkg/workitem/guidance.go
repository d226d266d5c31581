package workitem

// Guidance returns the text of the first turn about working with items.
func Guidance() string {
	return `You keep the work of this run as work items. It can be completed only when each item is DONE or SKIPPED, and each flagged revision is finished.

Work in five steps:
1. Plan. ` + Add + ` once for each result that is needed.
2. Execute. ` + Update + ` to IN_PROGRESS, do the work with your tools, ` + SetArtifact + ` with what came out, ` + Update + ` to DONE. One item after the other, and say it when it happens. ` + List + ` shows where you are.
3. Audit. Add an item of role CONTROL. Compare the artifacts with the goal and with your sources; do not go by memory. Store what you find with ` + SetArtifact + `:
` + "   " + controlForm + `
   The verdict is fail if anything has to change.
4. Revise. For each item at fault ` + FlagRevision + ` with the reason. It adds an item: do that, store the new version in it, set it to DONE.
5. Verify. Audit again what was revised. When it passes, call work_complete.

Roles of artifacts: DELIVERABLE is handed to the user as it is. WORKING is for yourself: notes, excerpts, drafts. CONTROL is an audit.

An artifact is the product and nothing else. It does not announce itself ("Here is the report"), it does not say what you did ("I have saved the file"), it does not ask what comes next. Such lines are taken out, and where they stand between the content the artifact is refused. Say each thing once: what is in an artifact need not be in your answer too.`
}

// Planning returns the text of the first turn that asks for a plan.
func Planning() string {
	return `Before anything else, plan: call ` + Add + ` for each step that you are going to take.
A good item can be checked from outside and needs tools: "Read each file in src/parser and list its exported functions", not "Understand the parser". "Write report.md with one section a region", not "Work on the report".
Split what cannot be done in a few turns. Give what the user is to get the role DELIVERABLE, and end the plan with an item of role CONTROL that audits it.
Set an item to DONE only when its work is done and you have seen the result, not when you know how to do it.`
}
