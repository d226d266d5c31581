package cli

// The Help methods return what --help of a verb shows after its summary: one example.
// Indented lines are printed unchanged.

func (runCmd) Help() string {
	return "Example:\n\n  harness run --model openai:gpt-5 'fix the failing test'"
}

func (serveCmd) Help() string {
	return "Example:\n\n  harness serve --nats nats://bus:4222 --roles turn --listen 127.0.0.1:0"
}

func (provisionCmd) Help() string {
	return "Example:\n\n  harness provision --nats nats://bus:4222 --partitions 4 --replicas 3"
}

func (doctorCmd) Help() string {
	return "Without a NATS server at the default address it examines this machine.\n\nExamples:\n\n  harness doctor\n  harness doctor --nats nats://bus:4222"
}

func (watchCmd) Help() string {
	return "Example:\n\n  harness watch r-x7k2qm4a --output jsonl"
}

func (showCmd) Help() string {
	return "Example:\n\n  harness show r-x7k2qm4a --conversation"
}

func (listCmd) Help() string {
	return "Example:\n\n  harness list --status running,parked --limit 20"
}

func (lastCmd) Help() string {
	return "Example:\n\n  harness show $(harness last)"
}

func (sendCmd) Help() string {
	return "Example:\n\n  harness send r-x7k2qm4a 'also update the changelog'"
}

func (answerCmd) Help() string {
	return "Example:\n\n  harness answer r-x7k2qm4a 'use PostgreSQL'"
}

func (approveCmd) Help() string {
	return "Example:\n\n  harness approve r-x7k2qm4a --deny --reason 'not on this branch'"
}

func (interruptCmd) Help() string {
	return "Example:\n\n  harness interrupt r-x7k2qm4a"
}

func (resumeCmd) Help() string {
	return "Example:\n\n  harness resume r-x7k2qm4a --max-turns 100"
}

func (cancelCmd) Help() string {
	return "Example:\n\n  harness cancel r-x7k2qm4a --reason 'no longer needed'"
}

func (deleteCmd) Help() string {
	return "Example:\n\n  harness delete --older-than 30d"
}

func (agentInitCmd) Help() string {
	return "Example:\n\n  harness agent init --example research agents"
}

func (agentCheckCmd) Help() string {
	return "Example:\n\n  harness agent check agent.yaml contract.yaml"
}

func (agentSchemaCmd) Help() string {
	return "Example:\n\n  harness agent schema --kind hooks > hooks.json"
}

func (demoCmd) Help() string {
	return "Example:\n\n  harness demo"
}

func (versionCmd) Help() string {
	return "Example:\n\n  harness version"
}

func (helpCmd) Help() string {
	return "Example:\n\n  harness help agent check"
}

func (completionCmd) Help() string {
	return "Examples:\n\n  source <(harness completion bash)\n  source <(harness completion zsh)\n  harness completion fish | source"
}
