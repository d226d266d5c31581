package main

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
	return "Example:\n\n  harness doctor --nats nats://bus:4222"
}

func (watchCmd) Help() string {
	return "Example:\n\n  harness watch r-20261121-103015-x7k2q --output jsonl"
}

func (showCmd) Help() string {
	return "Example:\n\n  harness show r-20261121-103015-x7k2q --conversation"
}

func (listCmd) Help() string {
	return "Example:\n\n  harness list --status running,parked"
}

func (sendCmd) Help() string {
	return "Example:\n\n  harness send r-20261121-103015-x7k2q 'also update the changelog'"
}

func (answerCmd) Help() string {
	return "Example:\n\n  harness answer r-20261121-103015-x7k2q 'use PostgreSQL'"
}

func (approveCmd) Help() string {
	return "Example:\n\n  harness approve r-20261121-103015-x7k2q --deny --reason 'not on this branch'"
}

func (interruptCmd) Help() string {
	return "Example:\n\n  harness interrupt r-20261121-103015-x7k2q"
}

func (resumeCmd) Help() string {
	return "Example:\n\n  harness resume r-20261121-103015-x7k2q --max-turns 100"
}

func (cancelCmd) Help() string {
	return "Example:\n\n  harness cancel r-20261121-103015-x7k2q --reason 'no longer needed'"
}

func (deleteCmd) Help() string {
	return "Example:\n\n  harness delete r-20261121-103015-x7k2q"
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
